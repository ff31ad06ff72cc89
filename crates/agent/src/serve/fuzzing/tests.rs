//! The corpora, read again.

use super::*;

#[path = "../../../../../fuzz/corpus.rs"]
mod corpus;

#[test]
fn every_input_of_the_corpora_is_read_to_its_end() {
    corpus::each("frames", frames);
    corpus::each("journal", journal);
}
