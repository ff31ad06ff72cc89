//! Databases by the load generator's own drivers: what they take, refuse and survive.

mod mariadb;
mod mariadb_faults;
mod mariadb_login;
mod mysql;
mod pipelining_mariadb;
mod pipelining_postgres;
mod pipelining_servers;
mod postgres;
mod postgres_faults;
mod postgres_login;
mod procedures;
mod servers;
