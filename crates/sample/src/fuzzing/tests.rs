//! The corpora, read again.

use super::*;

#[path = "../../../../fuzz/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/tree.rs"]
mod tree;

#[test]
fn every_input_of_the_corpora_is_read_to_its_end() {
    let root = tempfile::tempdir().expect("a directory");
    corpus::each("kernel", |input| {
        let (first, second) = tree::halves(input);
        tree::clear(root.path());
        tree::write(root.path(), first);
        sources(root.path(), || tree::write(root.path(), second));
    });
    corpus::each("exposition", exposition);
    corpus::each("command", command);
}
