//! A place's facts, restores of prepared data and settling.

mod facts;
mod full;
mod prepared;
mod restore;
mod settle;
mod sparse;
