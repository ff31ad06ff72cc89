//! A place's facts, its covariates, restores of prepared data and settling.

mod covariates;
mod facts;
mod foreign;
mod full;
mod prepared;
mod restore;
mod settle;
mod sparse;
