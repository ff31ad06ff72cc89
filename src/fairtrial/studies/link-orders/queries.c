/* Inserts, indexes, joins and sorts in an SQLite database in memory. */
#include <stdio.h>
#include "sqlite3.h"

static const char *const statements[] = {
    "create table item (id integer primary key, kind integer, price real, name text)",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) "
    "insert into item select i, i * 7919 % 97, i * 31 % 1009 / 10.0, 'item ' || (i * 104729 % 20011) from n",
    "create index by_kind on item (kind, price)",
    "select kind, count(*), avg(price), max(name) from item group by kind having count(*) > 10",
    "select a.id, b.id from item a join item b on b.kind = a.kind and b.price = a.price where a.id < b.id limit 20000",
    "select name from item order by name desc limit 500",
    "update item set price = price * 1.01 where kind % 3 = 0",
    "delete from item where kind in (select kind from item group by kind order by sum(price) limit 20)",
};

static int counted(void *rows, int columns, char **values, char **names)
{
    (void) columns, (void) values, (void) names;
    ++*(long *) rows;
    return 0;
}

int main(void)
{
    sqlite3 *database;
    long rows = 0;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        return 1;
    for (unsigned at = 0; at < sizeof statements / sizeof *statements; at++)
        if (sqlite3_exec(database, statements[at], counted, &rows, NULL) != SQLITE_OK) {
            fprintf(stderr, "%s: %s\n", statements[at], sqlite3_errmsg(database));
            return 1;
        }
    printf("%ld rows\n", rows);
    return sqlite3_close(database) == SQLITE_OK ? 0 : 1;
}
