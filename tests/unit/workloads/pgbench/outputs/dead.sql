\set a random(1, 2)
\set b 3 - :a
BEGIN;
UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = :a;
\sleep 1 ms
UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = :b;
COMMIT;
