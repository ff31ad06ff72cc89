//! Transactions that begin while another terminal changes what they read; skipped, and said so, where no MariaDB is
//! installed.

use std::thread;
use std::time::Duration;

use fairtrial_protocol::load::{Endpoint, Sql};

use crate::client::Client;
use crate::driver::dialect::Dialect;
use crate::driver::endpoint::{self, Job};
use crate::driver::{Driver, DriverError};
use crate::error::LoadError;
use crate::tests::mariadb::{Server, shared};
use crate::tpcc::inputs::{CustomerKey, Inputs};
use crate::tpcc::schema::TABLES;
use crate::tpcc::{procedures, statements};

use super::super::{TpccEnd, run};

const NOW: &str = "2026-05-04 03:02:01";
const LIMIT: Duration = Duration::from_mins(1);

/// A warehouse, its first district, and a customer of bad credit.
const ROWS: [&str; 3] = [
    "INSERT INTO warehouse VALUES (1, 'W', '', '', '', '', '', 0.1, 0)",
    "INSERT INTO district VALUES (1, 1, 'D', '', '', '', '', '', 0.1, 0, 1)",
    "INSERT INTO customer VALUES (1, 1, 1, 'FIRST', 'OE', 'BARBARBAR', '', '', '', '', '', '', '2026-01-01 00:00:00', \
     'BC', 50000, 0.1, 0, 0, 1, 0, 'remarks')",
];

/// What a payment from another warehouse does to the customer, up to its commit.
const OTHER_PAYMENT: [&str; 2] = [
    "BEGIN",
    "UPDATE customer SET c_data = CONCAT('another|', c_data)",
];

/// A customer of the second district; in the first, an order to deliver, and a later one that was delivered.
const ORDERED: [&str; 4] = [
    "INSERT INTO customer SELECT 2, 2, 1, c_first, c_middle, 'BARBAROUGHT', '', '', '', '', '', '', c_since, 'GC', \
     50000, 0.1, 0, 0, 1, 0, '' FROM customer",
    "INSERT INTO orders VALUES (1, 1, 1, 1, '2026-01-01 00:00:00', NULL, 1, 1), \
     (2, 1, 1, 1, '2026-01-01 00:00:00', 1, 1, 1)",
    "INSERT INTO new_order VALUES (1, 1, 1)",
    "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
     ol_dist_info) VALUES (1, 1, 1, 1, 1, 1, 5, 10, ''), (1, 1, 2, 1, 1, 1, 5, 10, '')",
];

/// The first order of the second district.
const OTHER_ORDER: [&str; 5] = [
    "BEGIN",
    "INSERT INTO orders VALUES (1, 2, 1, 2, '2026-01-01 00:00:00', NULL, 1, 1)",
    "INSERT INTO new_order VALUES (1, 2, 1)",
    "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
     ol_dist_info) VALUES (1, 2, 1, 1, 1, 1, 5, 20, '')",
    "COMMIT",
];

struct TransactionJob<'a> {
    inputs: &'a Inputs,
    by_procedure: bool,
}

impl Job for TransactionJob<'_> {
    type Output = Result<Result<TpccEnd, DriverError>, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let ended = driver.block_on(async {
            if self.by_procedure {
                let mut connection = driver.connect(&procedures::calls(driver.dialect())).await?;
                procedures::run(&mut connection, self.inputs, NOW).await
            } else {
                let mut connection = driver.connect(&statements::all(driver.dialect())).await?;
                run(&mut connection, self.inputs, NOW).await
            }
        });
        ended.map_err(LoadError::start("a reactor"))
    }
}

fn sql(endpoint: &Endpoint, statements: impl IntoIterator<Item = String>) -> String {
    let request = Sql {
        endpoint: endpoint.clone(),
        statements: statements.into_iter().collect(),
        connect_timeout_ms: 0,
    };
    let answers = crate::sql(&request).expect("the statements run");
    let last = answers.last().and_then(|answer| answer.rows.first());
    last.and_then(|row| row[0].clone()).unwrap_or_default()
}

fn make(server: &Server, database: &str) -> Endpoint {
    let statements = ["DROP DATABASE IF EXISTS", "CREATE DATABASE"];
    let statements = statements.map(|statement| format!("{statement} {database}"));
    sql(&server.endpoint("mysql"), statements);
    let tables = server.endpoint(database);
    sql(&tables, TABLES.map(|table| table.create(Dialect::Mysql)));
    sql(&tables, ROWS.map(Into::into));
    let procedures = procedures::create(Dialect::Mysql).expect("it has them");
    sql(&tables, procedures.map(Into::into));
    tables
}

/// How a transaction ends that waits for what `other` has locked: meanwhile `happens` does.
fn ended(
    (endpoint, database): (&Endpoint, &str),
    job: TransactionJob<'_>,
    other: &mut Client,
    happens: &[&str],
) -> TpccEnd {
    let waiting = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN information_schema.processlist \
         ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = '{database}'"
    );
    thread::scope(|scope| {
        let running = scope.spawn(move || endpoint::with(endpoint, job));
        while sql(endpoint, [waiting.clone()]) == "0" {
            assert!(!running.is_finished(), "it need not wait");
            // The server makes this table anew ten times a second, and not while it is asked more often.
            thread::sleep(Duration::from_millis(200));
        }
        sql(endpoint, happens.iter().map(ToString::to_string));
        other.ask("COMMIT", LIMIT).expect("nothing is in its way");
        let ended = running.join().expect("it ends").expect("a reactor");
        ended.expect("it does not fail")
    })
}

fn in_between(endpoint: &Endpoint) -> Client {
    let mut other = Client::open(endpoint).expect("a thread");
    for statement in OTHER_PAYMENT {
        other.ask(statement, LIMIT).expect("the row is free");
    }
    other
}

#[test]
fn a_payment_that_waits_for_another_keeps_the_others_remark() {
    let Some(server) = shared() else { return };
    let inputs = &Inputs::Payment {
        warehouse: 1,
        district: 1,
        customer_place: (1, 1),
        customer: CustomerKey::Number(1),
        cents: 500,
    };
    for by_procedure in [false, true] {
        let endpoint = make(&server, "paid");
        let mut other = in_between(&endpoint);
        let job = TransactionJob {
            inputs,
            by_procedure,
        };
        let ended = ended((&endpoint, "paid"), job, &mut other, &[]);
        assert_eq!(ended, TpccEnd::default());
        let data = sql(&endpoint, ["SELECT c_data FROM customer".into()]);
        assert_eq!(
            data, "1 1 1 1 1 5.00|another|remarks",
            "by procedure: {by_procedure}"
        );
    }
}

#[test]
fn a_delivery_delivers_what_is_ordered_after_its_first_district() {
    let Some(server) = shared() else { return };
    let inputs = &Inputs::Delivery {
        warehouse: 1,
        carrier: 7,
    };
    for by_procedure in [false, true] {
        let endpoint = make(&server, "delivered");
        sql(&endpoint, ORDERED.map(Into::into));
        let mut other = in_between(&endpoint);
        let job = TransactionJob {
            inputs,
            by_procedure,
        };
        let ended = ended((&endpoint, "delivered"), job, &mut other, &OTHER_ORDER);
        let expected = TpccEnd {
            rolled_back: false,
            delivered: 2,
            skipped: 8,
        };
        assert_eq!(ended, expected, "by procedure: {by_procedure}");
        let owed = "SELECT GROUP_CONCAT(c_balance ORDER BY c_id) FROM customer";
        assert_eq!(sql(&endpoint, [owed.into()]), "10.00,20.00");
    }
}
