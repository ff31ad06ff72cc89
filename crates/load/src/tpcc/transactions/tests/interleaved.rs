//! A payment that begins while another customer's terminal changes the same row; skipped, and said so, where no MariaDB
//! is installed.

use std::thread;
use std::time::Duration;

use fairtrial_protocol::load::{Endpoint, Sql};

use crate::client::Client;
use crate::driver::dialect::Dialect;
use crate::driver::endpoint::{self, Job};
use crate::driver::{Driver, DriverError};
use crate::error::LoadError;
use crate::tests::mariadb::shared;
use crate::tpcc::inputs::{CustomerKey, Inputs};
use crate::tpcc::schema::TABLES;
use crate::tpcc::{procedures, statements};

use super::super::{TpccEnd, run};

const NOW: &str = "2026-05-04 03:02:01";
const LIMIT: Duration = Duration::from_mins(1);

/// A warehouse, its district, and a customer of bad credit.
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

const WAITING: &str =
    "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";

struct PaymentJob {
    by_procedure: bool,
}

impl Job for PaymentJob {
    type Output = Result<Result<TpccEnd, DriverError>, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let inputs = Inputs::Payment {
            warehouse: 1,
            district: 1,
            customer_place: (1, 1),
            customer: CustomerKey::Number(1),
            cents: 500,
        };
        let paid = driver.block_on(async {
            if self.by_procedure {
                let mut connection = driver.connect(&procedures::calls(driver.dialect())).await?;
                procedures::run(&mut connection, &inputs, NOW).await
            } else {
                let mut connection = driver.connect(&statements::all(driver.dialect())).await?;
                run(&mut connection, &inputs, NOW).await
            }
        });
        paid.map_err(LoadError::start("a reactor"))
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

fn make(server: &Endpoint, tables: &Endpoint) {
    sql(
        server,
        ["DROP DATABASE IF EXISTS paid", "CREATE DATABASE paid"].map(Into::into),
    );
    sql(tables, TABLES.map(|table| table.create(Dialect::Mysql)));
    sql(tables, ROWS.map(Into::into));
    let procedures = procedures::create(Dialect::Mysql).expect("it has them");
    sql(tables, procedures.map(Into::into));
}

#[test]
fn a_payment_that_waits_for_another_keeps_the_others_remark() {
    let Some(server) = shared() else { return };
    let (admin, endpoint) = (server.endpoint("mysql"), server.endpoint("paid"));
    for by_procedure in [false, true] {
        make(&admin, &endpoint);
        let mut other = Client::open(&endpoint).expect("a thread");
        for statement in OTHER_PAYMENT {
            other.ask(statement, LIMIT).expect("the row is free");
        }
        let endpoint = &endpoint;
        thread::scope(|scope| {
            let paying = scope.spawn(move || endpoint::with(endpoint, PaymentJob { by_procedure }));
            while sql(&admin, [WAITING.into()]) == "0" {
                assert!(!paying.is_finished(), "it need not wait");
                // The server makes this table anew ten times a second, and not while it is asked more often.
                thread::sleep(Duration::from_millis(200));
            }
            other.ask("COMMIT", LIMIT).expect("nothing is in its way");
            let paid = paying.join().expect("it ends").expect("a reactor");
            assert_eq!(paid, Ok(TpccEnd::default()));
        });
        let data = sql(endpoint, ["SELECT c_data FROM customer".into()]);
        assert_eq!(
            data, "1 1 1 1 1 5.00|another|remarks",
            "by procedure: {by_procedure}"
        );
    }
}
