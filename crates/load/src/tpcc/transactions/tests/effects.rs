//! What each transaction does to a database small enough to say it in full.

use crate::driver::sqlite::SqliteConnection;
use crate::driver::{Connection as _, Driver as _, DriverError};
use crate::tests::database::Tiny;
use crate::tpcc::inputs::{CustomerKey, Inputs, OrderLine};
use crate::tpcc::{ITEMS, statements};

use super::super::{TpccEnd, run};

const NOW: &str = "2026-05-04 03:02:01";

/// Runs one transaction; on an error it rolls back, as its caller does.
fn perform(tiny: &Tiny, inputs: &Inputs) -> Result<TpccEnd, DriverError> {
    let driver = tiny.driver();
    let performed = driver.block_on(async {
        let mut connection: SqliteConnection =
            driver.connect(&statements::all(driver.dialect())).await?;
        let ended = run(&mut connection, inputs, NOW).await;
        if ended.is_err() {
            connection.rollback().await?;
        }
        ended
    });
    performed.expect("ready")
}

fn new_order(items: [i64; 2]) -> Inputs {
    let line = |item, quantity| OrderLine {
        item,
        supply: 1,
        quantity,
    };
    Inputs::NewOrder {
        warehouse: 1,
        district: 2,
        customer: 1,
        lines: vec![line(items[0], 4), line(items[1], 45)],
    }
}

fn payment(customer: CustomerKey) -> Inputs {
    Inputs::Payment {
        warehouse: 1,
        district: 1,
        customer_place: (1, 2),
        customer,
        cents: 123_456,
    }
}

#[test]
fn new_order_writes_the_order_its_lines_and_the_stock_it_takes() {
    let tiny = Tiny::new();
    assert_eq!(perform(&tiny, &new_order([1, 3])), Ok(TpccEnd::default()));
    let order = tiny.row("SELECT * FROM orders WHERE o_d_id = 2 AND o_id = 3");
    assert_eq!(order, ["3", "2", "1", "1", NOW, "NULL", "2", "1"]);
    assert_eq!(
        tiny.row("SELECT COUNT(*) FROM new_order WHERE no_d_id = 2 AND no_o_id = 3"),
        ["1"]
    );
    assert_eq!(
        tiny.row("SELECT d_next_o_id FROM district WHERE d_id = 2"),
        ["4"]
    );
    assert_eq!(
        tiny.row("SELECT d_next_o_id FROM district WHERE d_id = 1"),
        ["3"],
        "the other district stands"
    );
    let line = |number| {
        tiny.row(&format!(
            "SELECT * FROM order_line WHERE ol_d_id = 2 AND ol_o_id = 3 AND ol_number = {number}"
        ))
    };
    assert_eq!(
        line(1),
        ["3", "2", "1", "1", "1", "1", "NULL", "4", "500", "info 02"],
        "4 at 1.25"
    );
    assert_eq!(
        line(2),
        [
            "3", "2", "1", "2", "3", "1", "NULL", "45", "14625", "info 02"
        ],
        "45 at 3.25"
    );
    let stock = |item| {
        tiny.row(&format!(
            "SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_i_id = {item}"
        ))
    };
    assert_eq!(stock(1), ["46", "4", "1", "0"]);
    assert_eq!(stock(3), ["96", "45", "1", "0"], "50 - 45 + 91");
    assert_eq!(stock(2), ["50", "0", "0", "0"]);
}

#[test]
fn a_remote_line_counts_as_remote_at_its_supplier_and_in_the_order() {
    let tiny = Tiny::new();
    tiny.run("INSERT INTO stock SELECT s_i_id, 2, 20, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
              s_dist_07, s_dist_08, s_dist_09, s_dist_10, 0, 0, 0, s_data FROM stock WHERE s_i_id = 2");
    let lines = vec![OrderLine {
        item: 2,
        supply: 2,
        quantity: 7,
    }];
    let remote = Inputs::NewOrder {
        warehouse: 1,
        district: 1,
        customer: 1,
        lines,
    };
    assert_eq!(perform(&tiny, &remote), Ok(TpccEnd::default()));
    let stock = "SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_i_id = 2 AND s_w_id =";
    assert_eq!(tiny.row(&format!("{stock} 2")), ["13", "7", "1", "1"]);
    assert_eq!(tiny.row(&format!("{stock} 1")), ["50", "0", "0", "0"]);
    assert_eq!(
        tiny.row("SELECT o_all_local FROM orders WHERE o_d_id = 1 AND o_id = 3"),
        ["0"]
    );
}

#[test]
fn an_unused_item_rolls_the_whole_order_back() {
    let tiny = Tiny::new();
    let ended = perform(&tiny, &new_order([1, ITEMS + 1])).expect("a rollback is no error");
    assert_eq!(
        ended,
        TpccEnd {
            rolled_back: true,
            delivered: 0,
            skipped: 0
        }
    );
    assert_eq!(
        tiny.row("SELECT COUNT(*), MAX(o_id) FROM orders"),
        ["4", "2"]
    );
    assert_eq!(
        tiny.row("SELECT s_quantity, s_order_cnt FROM stock WHERE s_i_id = 1"),
        ["50", "0"]
    );
    assert_eq!(
        tiny.row("SELECT d_next_o_id FROM district WHERE d_id = 2"),
        ["3"]
    );
}

#[test]
fn payment_moves_money_at_the_own_place_and_at_the_customers() {
    let tiny = Tiny::new();
    assert_eq!(
        perform(&tiny, &payment(CustomerKey::LastName("BARBARBAR".into()))),
        Ok(TpccEnd::default())
    );
    assert_eq!(tiny.row("SELECT w_ytd FROM warehouse"), ["126456"]);
    assert_eq!(
        tiny.row("SELECT d_ytd FROM district WHERE d_id = 1"),
        ["124456"]
    );
    assert_eq!(
        tiny.row("SELECT d_ytd FROM district WHERE d_id = 2"),
        ["2000"]
    );
    let customer =
        "SELECT c_balance, c_ytd_payment, c_payment_cnt, c_data FROM customer WHERE c_d_id =";
    assert_eq!(
        tiny.row(&format!("{customer} 2")),
        ["-125056", "125456", "2", "remarks"],
        "good credit, no remark"
    );
    assert_eq!(
        tiny.row(&format!("{customer} 1")),
        ["-600", "1000", "1", "remarks"]
    );
    let history = tiny.row("SELECT * FROM history WHERE h_amount = 123456");
    assert_eq!(history, ["1", "2", "1", "1", "1", NOW, "123456", "W    D1"]);
}

#[test]
fn a_customer_of_bad_credit_is_remarked_upon() {
    let tiny = Tiny::new();
    tiny.run("UPDATE customer SET c_credit = 'BC' WHERE c_d_id = 2");
    assert_eq!(
        perform(&tiny, &payment(CustomerKey::Number(1))),
        Ok(TpccEnd::default())
    );
    let customer = tiny.row("SELECT c_data, c_balance FROM customer WHERE c_d_id = 2");
    assert_eq!(customer, ["1 2 1 1 1 1234.56|remarks", "-125056"]);
}

#[test]
fn delivery_takes_the_oldest_order_of_each_district_and_bills_it() {
    let tiny = Tiny::new();
    let delivery = Inputs::Delivery {
        warehouse: 1,
        carrier: 9,
    };
    let ended = perform(&tiny, &delivery).expect("delivered");
    assert_eq!(
        ended,
        TpccEnd {
            rolled_back: false,
            delivered: 2,
            skipped: 8
        }
    );
    assert_eq!(tiny.row("SELECT COUNT(*) FROM new_order"), ["0"]);
    for district in 1..=2 {
        let of = |sql: &str| tiny.row(&format!("{sql} = {district}"));
        assert_eq!(
            of("SELECT o_carrier_id FROM orders WHERE o_id = 2 AND o_d_id"),
            ["9"]
        );
        assert_eq!(
            of("SELECT ol_delivery_d FROM order_line WHERE ol_o_id = 2 AND ol_d_id"),
            [NOW]
        );
        let balance = (400 - 1_000 * district + 70).to_string();
        let expected = [balance, "-2098".into()];
        assert_eq!(
            of("SELECT c_balance, c_delivery_cnt FROM customer WHERE c_d_id"),
            expected
        );
    }
    let again = perform(&tiny, &delivery).expect("nothing to deliver is no error");
    assert_eq!((again.delivered, again.skipped), (0, 10), "clause 2.7.4.2");
}

#[test]
fn transactions_that_only_read_change_nothing() {
    let tiny = Tiny::new();
    let changes = || {
        tiny.row("SELECT COUNT(*), SUM(o_id), (SELECT SUM(s_quantity) FROM stock), (SELECT SUM(c_balance) FROM customer) FROM orders")
    };
    let before = changes();
    for inputs in [
        Inputs::OrderStatus {
            warehouse: 1,
            district: 1,
            customer: CustomerKey::Number(1),
        },
        Inputs::OrderStatus {
            warehouse: 1,
            district: 2,
            customer: CustomerKey::LastName("BARBARBAR".into()),
        },
        Inputs::StockLevel {
            warehouse: 1,
            district: 2,
            threshold: 20,
        },
    ] {
        assert_eq!(perform(&tiny, &inputs), Ok(TpccEnd::default()));
    }
    assert_eq!(changes(), before);
}

#[test]
fn what_is_missing_is_an_error_that_leaves_nothing_behind() {
    let tiny = Tiny::new();
    tiny.run("DELETE FROM stock WHERE s_i_id = 3");
    let error = perform(&tiny, &new_order([1, 3])).expect_err("no stock of item 3");
    assert_eq!(
        (error.code.as_str(), error.retryable),
        ("unexpected_answer", false)
    );
    assert_eq!(
        tiny.row("SELECT COUNT(*) FROM orders"),
        ["4"],
        "rolled back"
    );
    assert!(perform(&tiny, &payment(CustomerKey::Number(7))).is_err());
    assert_eq!(tiny.row("SELECT w_ytd FROM warehouse"), ["3000"]);
    tiny.run("DELETE FROM order_line WHERE ol_o_id = 2 AND ol_d_id = 1");
    let status = Inputs::OrderStatus {
        warehouse: 1,
        district: 1,
        customer: CustomerKey::Number(1),
    };
    assert!(perform(&tiny, &status).is_err_and(|error| error.message.contains("no lines")));
}
