//! The load engine against real systems, in one binary: what several tests need is made once, and linked once.

mod arrivals;
mod changing_rates;
mod corruption;
mod databases;
mod file_access;
mod fleet;
mod locks;
mod noop;
mod oltp_postgres;
mod oltp_servers;
mod oltp_sqlite;
mod oltp_sysbench;
mod open_files;
mod process;
mod resume;
mod script_servers;
mod script_sqlite;
mod search;
mod sqlite_drive;
mod sqlite_load;
mod support;
