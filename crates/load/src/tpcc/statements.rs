//! The statements of the five transactions, prepared once per connection and named by position.

use crate::driver::StatementId;
use crate::driver::dialect::Dialect;
use crate::tpcc::DISTRICTS;

macro_rules! statements {
    ($($(#[$meta:meta])* $name:ident = $sql:literal;)*) => {
        /// A prepared statement.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Statement { $($(#[$meta])* $name,)* }

        const TEMPLATES: &[&str] = &[$($sql,)*];
    };
}

statements! {
    /// Warehouse's tax.
    WarehouseTax = "SELECT w_tax FROM warehouse WHERE w_id = ?";
    /// District's tax and its next order.
    NextOrder = "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?{lock}";
    /// Takes the next order.
    TakeOrder = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?";
    /// Customer's discount, name and credit.
    Discount = "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    /// A new order.
    InsertOrder = "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
        VALUES (?, ?, ?, ?, ?, NULL, ?, ?)";
    /// Its row among the undelivered.
    InsertNewOrder = "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)";
    /// An item.
    Item = "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?";
    /// Takes from stock.
    UpdateStock = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
        s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?";
    /// An order line.
    InsertOrderLine = "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
        ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)";
    /// Adds a payment to a warehouse.
    PayWarehouse = "UPDATE warehouse SET w_ytd = w_ytd + {money} WHERE w_id = ?";
    /// A warehouse's name and address.
    Warehouse = "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?";
    /// Adds a payment to a district.
    PayDistrict = "UPDATE district SET d_ytd = d_ytd + {money} WHERE d_w_id = ? AND d_id = ?";
    /// A district's name and address.
    District = "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?";
    /// Customers of one last name, by first name.
    CustomersByName = "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
    /// The paying customer.
    PayingCustomer = "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
        c_since, c_credit, c_credit_lim, c_discount, c_balance FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?{lock}";
    /// A customer's remarks. They are read and written back, and MariaDB and MySQL read without a lock as of the
    /// transaction's beginning, when another payment may have been under way.
    CustomerData = "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?{lock}";
    /// Takes a payment.
    PayCustomer = "UPDATE customer SET c_balance = c_balance - {money}, c_ytd_payment = c_ytd_payment + {money}, \
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    /// Takes a payment and remarks upon it.
    PayBadCustomer = "UPDATE customer SET c_balance = c_balance - {money}, c_ytd_payment = c_ytd_payment + {money}, \
        c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    /// A payment's row.
    InsertHistory = "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    /// A customer's name and balance.
    Customer = "SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    /// A customer's last order.
    LastOrder = "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
        ORDER BY o_id DESC LIMIT 1";
    /// An order's lines.
    OrderLines = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    /// A district's oldest undelivered order.
    OldestNewOrder = "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1{lock}";
    /// It is undelivered no longer.
    DeleteNewOrder = "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    /// Whose order.
    OrderCustomer = "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    /// Its carrier.
    CarryOrder = "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    /// Its lines are delivered.
    DeliverLines = "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    /// What they cost.
    SumLines = "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    /// The customer owes it.
    BillCustomer = "UPDATE customer SET c_balance = c_balance + {money}, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    /// A district's next order, read only.
    PeekOrder = "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    /// Distinct items of the last orders that are low in stock.
    LowStock = "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?";
}

impl Statement {
    /// Its place among the prepared statements.
    pub fn id(self) -> StatementId {
        StatementId(self as usize)
    }
}

/// Reads an item's stock with the information of one district, and locks it.
pub fn stock_of(district: i64) -> StatementId {
    StatementId(TEMPLATES.len() + usize::try_from(district - 1).unwrap_or_default())
}

/// All statements, in the order of their numbers.
pub fn all(dialect: Dialect) -> Vec<String> {
    let stock = (1..=DISTRICTS).map(|district| {
        format!("SELECT s_quantity, s_data, s_dist_{district:02} FROM stock WHERE s_w_id = ? AND s_i_id = ?{{lock}}")
    });
    TEMPLATES
        .iter()
        .map(ToString::to_string)
        .chain(stock)
        .map(|template| dialect.render(&template))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_the_statements_they_name() {
        let all = all(Dialect::Sqlite);
        assert!(all[Statement::LowStock.id().0].contains("COUNT(DISTINCT s_i_id)"));
        assert!(
            all[stock_of(1).0].contains("s_dist_01") && all[stock_of(10).0].contains("s_dist_10")
        );
        assert_eq!(all.len(), TEMPLATES.len() + 10);
        assert!(
            all.iter().all(|sql| !sql.contains('{')),
            "every token is written"
        );
    }
}
