//! The corpus of what kernels say, read again.

use fairtrial_state::facts_below;

#[path = "../../../../fuzz/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/tree.rs"]
mod tree;

#[test]
fn every_tree_of_the_corpus_has_facts() {
    let root = tempfile::tempdir().expect("a directory");
    corpus::each("kernel", |input| {
        tree::clear(root.path());
        tree::write(root.path(), tree::halves(input).0);
        facts_below(root.path(), root.path()).expect("facts describe, and refuse nothing");
    });
}
