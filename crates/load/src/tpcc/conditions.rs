//! The twelve consistency conditions (clause 3.3.2), each as a query for the rows of one warehouse that violate it.
//!
//! One warehouse at a time keeps every intermediate table small enough for memory. `{w}` is the warehouse.

/// One condition.
#[derive(Debug)]
pub struct ConditionQuery {
    /// Its clause.
    pub clause: &'static str,
    /// In words.
    pub statement: &'static str,
    violators: &'static str,
}

impl ConditionQuery {
    /// The query for violating rows of a warehouse.
    pub fn query(&self, warehouse: u32) -> String {
        let delivered_at_load = super::FIRST_UNDELIVERED - 1;
        self.violators
            .replace("{w}", &warehouse.to_string())
            .replace("{delivered_at_load}", &delivered_at_load.to_string())
    }
}

/// Columns of violating rows that are amounts of money; a database without decimals gives them in cents.
const MONEY: [&str; 9] = [
    "w_ytd",
    "d_ytd",
    "c_balance",
    "c_ytd_payment",
    "sum_d_ytd",
    "sum_h_amount",
    "sum_ol_amount",
    "paid",
    "delivered",
];

/// A value as a reader expects it: cents get their point.
pub fn shown(column: &str, text: &str) -> String {
    match text.parse() {
        Ok(cents) if MONEY.contains(&column) => {
            let mut shown = String::new();
            crate::driver::Decimal::money(cents).write(&mut shown);
            shown
        }
        _ => text.to_owned(),
    }
}

/// All twelve, in their order.
pub const ALL: [ConditionQuery; 12] = [
    ConditionQuery {
        clause: "3.3.2.1",
        statement: "W_YTD is the sum of its districts' D_YTD",
        violators: "SELECT w_id, w_ytd, sum_d_ytd FROM warehouse LEFT JOIN \
            (SELECT d_w_id, SUM(d_ytd) AS sum_d_ytd FROM district WHERE d_w_id = {w} GROUP BY d_w_id) AS sums \
            ON d_w_id = w_id WHERE w_id = {w} AND (sum_d_ytd IS NULL OR w_ytd <> sum_d_ytd)",
    },
    ConditionQuery {
        clause: "3.3.2.2",
        statement: "D_NEXT_O_ID - 1 is the largest O_ID and, where orders are undelivered, the largest NO_O_ID",
        violators: "SELECT d_w_id, d_id, d_next_o_id, max_o_id, max_no_o_id FROM district \
            LEFT JOIN (SELECT o_d_id, MAX(o_id) AS max_o_id FROM orders WHERE o_w_id = {w} GROUP BY o_d_id) AS o \
            ON o_d_id = d_id \
            LEFT JOIN (SELECT no_d_id, MAX(no_o_id) AS max_no_o_id FROM new_order WHERE no_w_id = {w} \
            GROUP BY no_d_id) AS n ON no_d_id = d_id \
            WHERE d_w_id = {w} AND (max_o_id IS NULL OR d_next_o_id - 1 <> max_o_id OR max_no_o_id <> max_o_id)",
    },
    ConditionQuery {
        clause: "3.3.2.3",
        statement: "undelivered orders of a district are numbered without gap",
        violators: "SELECT no_w_id, no_d_id, MIN(no_o_id) AS min_no_o_id, MAX(no_o_id) AS max_no_o_id, \
            COUNT(*) AS new_orders FROM new_order WHERE no_w_id = {w} GROUP BY no_w_id, no_d_id \
            HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    },
    ConditionQuery {
        clause: "3.3.2.4",
        statement: "the sum of O_OL_CNT of a district is the number of its order lines",
        violators: "SELECT d_w_id, d_id, sum_o_ol_cnt, order_lines FROM district \
            LEFT JOIN (SELECT o_d_id, SUM(o_ol_cnt) AS sum_o_ol_cnt FROM orders WHERE o_w_id = {w} \
            GROUP BY o_d_id) AS o ON o_d_id = d_id \
            LEFT JOIN (SELECT ol_d_id, COUNT(*) AS order_lines FROM order_line WHERE ol_w_id = {w} \
            GROUP BY ol_d_id) AS l ON ol_d_id = d_id \
            WHERE d_w_id = {w} AND COALESCE(sum_o_ol_cnt, 0) <> COALESCE(order_lines, 0)",
    },
    ConditionQuery {
        clause: "3.3.2.5",
        statement: "O_CARRIER_ID is null exactly where the order is in NEW-ORDER",
        violators: "SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders \
            LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
            WHERE o_w_id = {w} AND (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) \
            UNION ALL SELECT no_w_id, no_d_id, NULL, NULL, no_o_id FROM new_order \
            LEFT JOIN orders ON o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id \
            WHERE no_w_id = {w} AND o_id IS NULL",
    },
    ConditionQuery {
        clause: "3.3.2.6",
        statement: "O_OL_CNT is the number of the order's lines",
        violators: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, order_lines FROM orders \
            LEFT JOIN (SELECT ol_d_id, ol_o_id, COUNT(*) AS order_lines FROM order_line WHERE ol_w_id = {w} \
            GROUP BY ol_d_id, ol_o_id) AS l ON ol_d_id = o_d_id AND ol_o_id = o_id \
            WHERE o_w_id = {w} AND o_ol_cnt <> COALESCE(order_lines, 0)",
    },
    ConditionQuery {
        clause: "3.3.2.7",
        statement: "OL_DELIVERY_D is null exactly where the order's O_CARRIER_ID is null",
        violators: "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id FROM order_line \
            LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
            WHERE ol_w_id = {w} AND (o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL))",
    },
    ConditionQuery {
        clause: "3.3.2.8",
        statement: "W_YTD is the sum of the warehouse's H_AMOUNT",
        violators: "SELECT w_id, w_ytd, sum_h_amount FROM warehouse LEFT JOIN \
            (SELECT h_w_id, SUM(h_amount) AS sum_h_amount FROM history WHERE h_w_id = {w} GROUP BY h_w_id) AS h \
            ON h_w_id = w_id WHERE w_id = {w} AND w_ytd <> COALESCE(sum_h_amount, 0)",
    },
    ConditionQuery {
        clause: "3.3.2.9",
        statement: "D_YTD is the sum of the district's H_AMOUNT",
        violators: "SELECT d_w_id, d_id, d_ytd, sum_h_amount FROM district LEFT JOIN \
            (SELECT h_d_id, SUM(h_amount) AS sum_h_amount FROM history WHERE h_w_id = {w} GROUP BY h_d_id) AS h \
            ON h_d_id = d_id WHERE d_w_id = {w} AND d_ytd <> COALESCE(sum_h_amount, 0)",
    },
    ConditionQuery {
        clause: "3.3.2.10",
        statement: "C_BALANCE is what was delivered to the customer less what the customer paid",
        violators: "SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM customer \
            LEFT JOIN (SELECT o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders JOIN order_line \
            ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
            WHERE o_w_id = {w} AND ol_w_id = {w} AND ol_delivery_d IS NOT NULL GROUP BY o_d_id, o_c_id) AS o \
            ON o_d_id = c_d_id AND o_c_id = c_id \
            LEFT JOIN (SELECT h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history WHERE h_c_w_id = {w} \
            GROUP BY h_c_d_id, h_c_id) AS h ON h_c_d_id = c_d_id AND h_c_id = c_id \
            WHERE c_w_id = {w} AND c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)",
    },
    ConditionQuery {
        clause: "3.3.2.11",
        statement: "orders less undelivered ones are 2100 in each district when loaded, and one more with each \
            delivery since (the sum of C_DELIVERY_CNT)",
        violators: "SELECT d_w_id, d_id, orders, new_orders, deliveries FROM district \
            LEFT JOIN (SELECT o_d_id, COUNT(*) AS orders FROM orders WHERE o_w_id = {w} GROUP BY o_d_id) AS o \
            ON o_d_id = d_id \
            LEFT JOIN (SELECT no_d_id, COUNT(*) AS new_orders FROM new_order WHERE no_w_id = {w} \
            GROUP BY no_d_id) AS n ON no_d_id = d_id \
            LEFT JOIN (SELECT c_d_id, SUM(c_delivery_cnt) AS deliveries FROM customer WHERE c_w_id = {w} \
            GROUP BY c_d_id) AS c ON c_d_id = d_id \
            WHERE d_w_id = {w} AND COALESCE(orders, 0) - COALESCE(new_orders, 0) \
            <> {delivered_at_load} + COALESCE(deliveries, 0)",
    },
    ConditionQuery {
        clause: "3.3.2.12",
        statement: "C_BALANCE plus C_YTD_PAYMENT is what was delivered to the customer",
        violators: "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered FROM customer \
            LEFT JOIN (SELECT o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders JOIN order_line \
            ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
            WHERE o_w_id = {w} AND ol_w_id = {w} AND ol_delivery_d IS NOT NULL GROUP BY o_d_id, o_c_id) AS o \
            ON o_d_id = c_d_id AND o_c_id = c_id \
            WHERE c_w_id = {w} AND c_balance + c_ytd_payment <> COALESCE(delivered, 0)",
    },
];
