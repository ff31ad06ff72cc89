//! The nine tables (clause 1.3), with all their columns, primary keys and the two indexes the transactions need.
//!
//! Foreign keys are not declared: the specification describes them as relationships, the consistency conditions check
//! them, and declaring them adds five indexes to `InnoDB` that no transaction reads.

use crate::driver::dialect::Type;
use crate::driver::table::{Column, Index, Table};

const fn column(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: false,
    }
}

const fn nullable(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: true,
    }
}

const fn decimal(digits: u8, scale: u8) -> Type {
    Type::Decimal { digits, scale }
}

/// Clause 1.3.1, `WAREHOUSE`.
pub static WAREHOUSE: Table = Table {
    name: "warehouse",
    columns: &[
        column("w_id", Type::Integer),
        column("w_name", Type::Variable(10)),
        column("w_street_1", Type::Variable(20)),
        column("w_street_2", Type::Variable(20)),
        column("w_city", Type::Variable(20)),
        column("w_state", Type::Fixed(2)),
        column("w_zip", Type::Fixed(9)),
        column("w_tax", decimal(4, 4)),
        column("w_ytd", decimal(12, 2)),
    ],
    primary_key: &["w_id"],
    indexes: &[],
};

/// `DISTRICT`.
pub static DISTRICT: Table = Table {
    name: "district",
    columns: &[
        column("d_id", Type::Integer),
        column("d_w_id", Type::Integer),
        column("d_name", Type::Variable(10)),
        column("d_street_1", Type::Variable(20)),
        column("d_street_2", Type::Variable(20)),
        column("d_city", Type::Variable(20)),
        column("d_state", Type::Fixed(2)),
        column("d_zip", Type::Fixed(9)),
        column("d_tax", decimal(4, 4)),
        column("d_ytd", decimal(12, 2)),
        column("d_next_o_id", Type::Integer),
    ],
    primary_key: &["d_w_id", "d_id"],
    indexes: &[],
};

/// `CUSTOMER`.
pub static CUSTOMER: Table = Table {
    name: "customer",
    columns: &[
        column("c_id", Type::Integer),
        column("c_d_id", Type::Integer),
        column("c_w_id", Type::Integer),
        column("c_first", Type::Variable(16)),
        column("c_middle", Type::Fixed(2)),
        column("c_last", Type::Variable(16)),
        column("c_street_1", Type::Variable(20)),
        column("c_street_2", Type::Variable(20)),
        column("c_city", Type::Variable(20)),
        column("c_state", Type::Fixed(2)),
        column("c_zip", Type::Fixed(9)),
        column("c_phone", Type::Fixed(16)),
        column("c_since", Type::Time),
        column("c_credit", Type::Fixed(2)),
        column("c_credit_lim", decimal(12, 2)),
        column("c_discount", decimal(4, 4)),
        column("c_balance", decimal(12, 2)),
        column("c_ytd_payment", decimal(12, 2)),
        column("c_payment_cnt", Type::Integer),
        column("c_delivery_cnt", Type::Integer),
        column("c_data", Type::Variable(500)),
    ],
    primary_key: &["c_w_id", "c_d_id", "c_id"],
    indexes: &[Index {
        name: "customer_by_name",
        columns: &["c_w_id", "c_d_id", "c_last", "c_first"],
    }],
};

/// `HISTORY`, which has no key.
pub static HISTORY: Table = Table {
    name: "history",
    columns: &[
        column("h_c_id", Type::Integer),
        column("h_c_d_id", Type::Integer),
        column("h_c_w_id", Type::Integer),
        column("h_d_id", Type::Integer),
        column("h_w_id", Type::Integer),
        column("h_date", Type::Time),
        column("h_amount", decimal(6, 2)),
        column("h_data", Type::Variable(24)),
    ],
    primary_key: &[],
    indexes: &[],
};

/// `NEW-ORDER`.
pub static NEW_ORDER: Table = Table {
    name: "new_order",
    columns: &[
        column("no_o_id", Type::Integer),
        column("no_d_id", Type::Integer),
        column("no_w_id", Type::Integer),
    ],
    primary_key: &["no_w_id", "no_d_id", "no_o_id"],
    indexes: &[],
};

/// `ORDER`; in the plural, since the singular is a word of SQL.
pub static ORDERS: Table = Table {
    name: "orders",
    columns: &[
        column("o_id", Type::Integer),
        column("o_d_id", Type::Integer),
        column("o_w_id", Type::Integer),
        column("o_c_id", Type::Integer),
        column("o_entry_d", Type::Time),
        nullable("o_carrier_id", Type::Integer),
        column("o_ol_cnt", Type::Integer),
        column("o_all_local", Type::Integer),
    ],
    primary_key: &["o_w_id", "o_d_id", "o_id"],
    indexes: &[Index {
        name: "orders_by_customer",
        columns: &["o_w_id", "o_d_id", "o_c_id", "o_id"],
    }],
};

/// `ORDER-LINE`.
pub static ORDER_LINE: Table = Table {
    name: "order_line",
    columns: &[
        column("ol_o_id", Type::Integer),
        column("ol_d_id", Type::Integer),
        column("ol_w_id", Type::Integer),
        column("ol_number", Type::Integer),
        column("ol_i_id", Type::Integer),
        column("ol_supply_w_id", Type::Integer),
        nullable("ol_delivery_d", Type::Time),
        column("ol_quantity", Type::Integer),
        column("ol_amount", decimal(6, 2)),
        column("ol_dist_info", Type::Fixed(24)),
    ],
    primary_key: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
    indexes: &[],
};

/// `ITEM`.
pub static ITEM: Table = Table {
    name: "item",
    columns: &[
        column("i_id", Type::Integer),
        column("i_im_id", Type::Integer),
        column("i_name", Type::Variable(24)),
        column("i_price", decimal(5, 2)),
        column("i_data", Type::Variable(50)),
    ],
    primary_key: &["i_id"],
    indexes: &[],
};

/// `STOCK`.
pub static STOCK: Table = Table {
    name: "stock",
    columns: &[
        column("s_i_id", Type::Integer),
        column("s_w_id", Type::Integer),
        column("s_quantity", Type::Integer),
        column("s_dist_01", Type::Fixed(24)),
        column("s_dist_02", Type::Fixed(24)),
        column("s_dist_03", Type::Fixed(24)),
        column("s_dist_04", Type::Fixed(24)),
        column("s_dist_05", Type::Fixed(24)),
        column("s_dist_06", Type::Fixed(24)),
        column("s_dist_07", Type::Fixed(24)),
        column("s_dist_08", Type::Fixed(24)),
        column("s_dist_09", Type::Fixed(24)),
        column("s_dist_10", Type::Fixed(24)),
        column("s_ytd", Type::Long),
        column("s_order_cnt", Type::Integer),
        column("s_remote_cnt", Type::Integer),
        column("s_data", Type::Variable(50)),
    ],
    primary_key: &["s_w_id", "s_i_id"],
    indexes: &[],
};

/// All tables, in the order of the content hash.
pub static TABLES: [&Table; 9] = [
    &ITEM,
    &WAREHOUSE,
    &DISTRICT,
    &STOCK,
    &CUSTOMER,
    &HISTORY,
    &ORDERS,
    &NEW_ORDER,
    &ORDER_LINE,
];
