//! The five transactions (clauses 2.4 to 2.8), written once for all systems.

mod delivery;
mod new_order;
mod order_status;
mod payment;
pub mod steps;
mod stock_level;

use self::steps::TpccEnd;
use super::inputs::Inputs;
use crate::driver::{Connection, Decimal, DriverError};

/// Runs one transaction from `BEGIN` to `COMMIT`. After an error the caller rolls back.
pub async fn run<C: Connection>(
    connection: &mut C,
    inputs: &Inputs,
    now: &str,
) -> Result<TpccEnd, DriverError> {
    match inputs {
        Inputs::NewOrder {
            warehouse,
            district,
            customer,
            lines,
        } => new_order::run(connection, (*warehouse, *district, *customer), lines, now).await,
        Inputs::Payment {
            warehouse,
            district,
            customer_place,
            customer,
            cents,
        } => {
            let (place, amount) = ((*warehouse, *district), Decimal::money(*cents));
            let payer = (*customer_place, customer);
            payment::run(connection, place, payer, amount, now).await
        }
        Inputs::OrderStatus {
            warehouse,
            district,
            customer,
        } => order_status::run(connection, (*warehouse, *district), customer).await,
        Inputs::Delivery { warehouse, carrier } => {
            delivery::run(connection, *warehouse, *carrier, now).await
        }
        Inputs::StockLevel {
            warehouse,
            district,
            threshold,
        } => stock_level::run(connection, (*warehouse, *district), *threshold).await,
    }
}

#[cfg(test)]
mod tests {
    mod effects;
    mod interleaved;
}
