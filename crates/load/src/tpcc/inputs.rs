//! What a terminal's user enters: the mix (clause 5.2.3) and each transaction's inputs (clauses 2.4.1 to 2.8.1).
//!
//! Everything a transaction needs is drawn before it runs, from a stream of the user's own. So equal seeds give equal
//! inputs, whatever the system answers and however often a transaction is repeated.

use std::collections::BTreeMap;

use super::constants::{A_CUSTOMER, A_ITEM, A_LAST_NAME, Constants};
use super::names::{last_digit, last_name};
use super::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::random::Random;

/// A transaction type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// New-Order.
    NewOrder,
    /// Payment.
    Payment,
    /// Order-Status.
    OrderStatus,
    /// Delivery.
    Delivery,
    /// Stock-Level.
    StockLevel,
}

impl Kind {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// Their names in results, in the same order.
    pub const NAMES: [&'static str; 5] = [
        "new_order",
        "payment",
        "order_status",
        "delivery",
        "stock_level",
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// What its thinking times and their sum in milliseconds are called among the counts of the fidelity report.
    pub fn thinking_names(self) -> (&'static str, &'static str) {
        match self {
            Self::NewOrder => ("new_order_thinking_times", "new_order_thinking_ms"),
            Self::Payment => ("payment_thinking_times", "payment_thinking_ms"),
            Self::OrderStatus => ("order_status_thinking_times", "order_status_thinking_ms"),
            Self::Delivery => ("delivery_thinking_times", "delivery_thinking_ms"),
            Self::StockLevel => ("stock_level_thinking_times", "stock_level_thinking_ms"),
        }
    }

    /// Cards in a deck of a hundred.
    fn cards(self) -> usize {
        match self {
            Self::NewOrder => 45,
            Self::Payment => 43,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 4,
        }
    }

    /// Keying time and mean of the thinking time, seconds (clause 5.2.5.7).
    pub fn waits_s(self) -> (f64, f64) {
        match self {
            Self::NewOrder => (18.0, 12.0),
            Self::Payment => (3.0, 12.0),
            Self::OrderStatus => (2.0, 10.0),
            Self::Delivery | Self::StockLevel => (2.0, 5.0),
        }
    }
}

/// How a customer is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomerKey {
    /// By number.
    Number(i64),
    /// By last name; the one in the middle of those that share it is meant.
    LastName(String),
}

impl CustomerKey {
    /// Adds whether its number was odd: of two numbers whose bits are joined by *or*, as `NURand` does, three in four
    /// are, where a uniform choice gives one in two.
    fn count(&self, mut add: impl FnMut(&'static str, usize)) {
        match self {
            Self::Number(number) => {
                add("nurand_customers", 1);
                add("nurand_customers_odd", odd(*number));
            }
            Self::LastName(name) => {
                add("nurand_last_names", 1);
                add("nurand_last_names_odd", last_digit(name) % 2);
            }
        }
    }
}

fn odd(number: i64) -> usize {
    usize::from(number % 2 == 1)
}

/// A line of a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLine {
    /// Item; one beyond the last in an order that is to be rolled back.
    pub item: i64,
    /// Supplying warehouse.
    pub supply: i64,
    /// Quantity.
    pub quantity: i64,
}

/// One transaction's inputs. `warehouse` is the terminal's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the specification's own names
pub enum Inputs {
    NewOrder {
        warehouse: i64,
        district: i64,
        customer: i64,
        lines: Vec<OrderLine>,
    },
    Payment {
        warehouse: i64,
        district: i64,
        customer_place: (i64, i64),
        customer: CustomerKey,
        cents: i64,
    },
    OrderStatus {
        warehouse: i64,
        district: i64,
        customer: CustomerKey,
    },
    Delivery {
        warehouse: i64,
        carrier: i64,
    },
    StockLevel {
        warehouse: i64,
        district: i64,
        threshold: i64,
    },
}

impl Inputs {
    /// The transaction's type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NewOrder { .. } => Kind::NewOrder,
            Self::Payment { .. } => Kind::Payment,
            Self::OrderStatus { .. } => Kind::OrderStatus,
            Self::Delivery { .. } => Kind::Delivery,
            Self::StockLevel { .. } => Kind::StockLevel,
        }
    }

    /// Adds what was drawn to the counts of the fidelity report.
    pub fn count(&self, drawn: &mut BTreeMap<&'static str, u64>) {
        /// Names of the counts of orders by their number of lines.
        const BY_LINES: [&str; 11] = [
            "new_order_lines_05",
            "new_order_lines_06",
            "new_order_lines_07",
            "new_order_lines_08",
            "new_order_lines_09",
            "new_order_lines_10",
            "new_order_lines_11",
            "new_order_lines_12",
            "new_order_lines_13",
            "new_order_lines_14",
            "new_order_lines_15",
        ];
        let mut add = |name, count: usize| *drawn.entry(name).or_default() += count as u64;
        add(self.kind().name(), 1);
        match self {
            Self::NewOrder {
                warehouse,
                customer,
                lines,
                ..
            } => {
                add("nurand_customers", 1);
                add("nurand_customers_odd", odd(*customer));
                let items = lines.iter().filter(|line| line.item <= ITEMS);
                add("nurand_items", items.clone().count());
                add("nurand_items_odd", items.map(|line| odd(line.item)).sum());
                add("order_lines", lines.len());
                add(
                    "order_lines_remote",
                    lines
                        .iter()
                        .filter(|line| line.supply != *warehouse)
                        .count(),
                );
                add(
                    "new_order_rollback",
                    usize::from(lines.iter().any(|line| line.item > ITEMS)),
                );
                add(BY_LINES[lines.len() - 5], 1);
            }
            Self::Payment {
                warehouse,
                customer_place,
                customer,
                ..
            } => {
                add(
                    "payment_remote",
                    usize::from(customer_place.0 != *warehouse),
                );
                add(
                    "payment_by_last_name",
                    usize::from(matches!(customer, CustomerKey::LastName(_))),
                );
                customer.count(add);
            }
            Self::OrderStatus { customer, .. } => {
                add(
                    "order_status_by_last_name",
                    usize::from(matches!(customer, CustomerKey::LastName(_))),
                );
                customer.count(add);
            }
            Self::Delivery { .. } | Self::StockLevel { .. } => {}
        }
    }
}

/// What every terminal of a run has in common.
#[derive(Clone, Copy, Debug)]
pub struct TerminalConstants {
    /// Scale.
    pub warehouses: i64,
    /// `NURand` constants.
    pub constants: Constants,
    /// Whether the home warehouse, and the district of Stock-Level, is drawn anew for each transaction.
    pub all_warehouses: bool,
}

/// One terminal: a warehouse and a district, a deck of cards and a stream of draws.
#[derive(Debug)]
pub struct Terminal {
    site: TerminalConstants,
    home: i64,
    district: i64,
    deck: Vec<Kind>,
    inputs: Random,
    waits: Random,
    /// Districts of Stock-Level, in a stream of their own: they came later, and equal seeds still draw equal orders.
    districts: Random,
}

impl Terminal {
    /// The terminal of a user, counted from 0: users go round the warehouses first, then round the districts, so
    /// that ten users per warehouse are the specification's ten terminals.
    pub fn new(site: TerminalConstants, seed: u64, user: u32) -> Self {
        let user_number = i64::from(user);
        Self {
            site,
            home: user_number % site.warehouses + 1,
            district: user_number / site.warehouses % DISTRICTS + 1,
            deck: Vec::with_capacity(100),
            inputs: Random::derive(seed, "inputs", &[user.into()]),
            waits: Random::derive(seed, "waits", &[user.into()]),
            districts: Random::derive(seed, "districts", &[user.into()]),
        }
    }

    /// Draws the next transaction: the next card of a shuffled deck of 45 New-Order, 43 Payment and 4 of each other
    /// type (clause 5.2.4.2), which keeps the mix exact over every hundred.
    pub fn next(&mut self) -> Inputs {
        if self.deck.is_empty() {
            self.deck.extend(
                Kind::ALL
                    .iter()
                    .flat_map(|kind| std::iter::repeat_n(*kind, kind.cards())),
            );
            self.inputs.shuffle(&mut self.deck);
        }
        let kind = self.deck.pop().unwrap_or(Kind::NewOrder);
        let warehouse = if self.site.all_warehouses {
            self.inputs.uniform(1, self.site.warehouses)
        } else {
            self.home
        };
        match kind {
            Kind::NewOrder => self.new_order(warehouse),
            Kind::Payment => self.payment(warehouse),
            Kind::OrderStatus => {
                let district = self.inputs.uniform(1, DISTRICTS);
                Inputs::OrderStatus {
                    warehouse,
                    district,
                    customer: self.customer(),
                }
            }
            Kind::Delivery => Inputs::Delivery {
                warehouse,
                carrier: self.inputs.uniform(1, 10),
            },
            Kind::StockLevel => {
                let threshold = self.inputs.uniform(10, 20);
                let district = if self.site.all_warehouses {
                    self.districts.uniform(1, DISTRICTS)
                } else {
                    self.district
                };
                Inputs::StockLevel {
                    warehouse,
                    district,
                    threshold,
                }
            }
        }
    }

    /// Keying and thinking times around a transaction, seconds; thinking is exponential, cut at ten times its mean
    /// (clause 5.2.5.4).
    pub fn waits_s(&mut self, kind: Kind, scale: f64) -> (f64, f64) {
        let (keying, mean) = kind.waits_s();
        let thinking = (-(1.0 - self.waits.fraction()).ln() * mean).min(10.0 * mean);
        (keying * scale, thinking * scale)
    }

    /// A factor for back-off, uniform over [0.5, 1.5), so that victims of one deadlock do not meet again.
    pub fn spread(&mut self) -> f64 {
        0.5 + self.waits.fraction()
    }

    fn new_order(&mut self, warehouse: i64) -> Inputs {
        let random = &mut self.inputs;
        let district = random.uniform(1, DISTRICTS);
        let customer = random.nurand(A_CUSTOMER, self.site.constants.customer, 1, CUSTOMERS);
        let count = random.uniform(5, 15);
        let rollback = random.percent(1);
        let line = |_| {
            let item = random.nurand(A_ITEM, self.site.constants.item, 1, ITEMS);
            let remote = random
                .percent(1)
                .then(|| random.uniform_except(1, self.site.warehouses, warehouse));
            OrderLine {
                item,
                supply: remote.flatten().unwrap_or(warehouse),
                quantity: random.uniform(1, 10),
            }
        };
        let mut lines: Vec<OrderLine> = (0..count).map(line).collect();
        if let Some(last) = lines.last_mut().filter(|_| rollback) {
            last.item = ITEMS + 1;
        }
        Inputs::NewOrder {
            warehouse,
            district,
            customer,
            lines,
        }
    }

    fn payment(&mut self, warehouse: i64) -> Inputs {
        let random = &mut self.inputs;
        let district = random.uniform(1, DISTRICTS);
        let remote = (!random.percent(85))
            .then(|| random.uniform_except(1, self.site.warehouses, warehouse));
        let customer_place = match remote.flatten() {
            Some(other) => (other, random.uniform(1, DISTRICTS)),
            None => (warehouse, district),
        };
        let cents = random.uniform(100, 500_000);
        Inputs::Payment {
            warehouse,
            district,
            customer_place,
            customer: self.customer(),
            cents,
        }
    }

    fn customer(&mut self) -> CustomerKey {
        let (random, constants) = (&mut self.inputs, &self.site.constants);
        if random.percent(60) {
            let mut name = String::new();
            last_name(
                random.nurand(A_LAST_NAME, constants.last_name, 0, 999),
                &mut name,
            );
            CustomerKey::LastName(name)
        } else {
            CustomerKey::Number(random.nurand(A_CUSTOMER, constants.customer, 1, CUSTOMERS))
        }
    }
}

#[cfg(test)]
mod tests;
