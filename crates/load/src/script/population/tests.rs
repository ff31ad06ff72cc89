use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::script::Draw;

use super::*;
use crate::population::content;

fn rows(rows: u64, seed: u64) -> ScriptTables {
    let column = |name: &str, draw| ScriptParameter {
        name: name.into(),
        draw,
    };
    let fill = |table: &str, rows| ScriptFill {
        table: table.into(),
        rows,
        columns: vec![
            column("id", Draw::Sequence { first: 1 }),
            column(
                "name",
                Draw::Text {
                    shortest: 4,
                    longest: 9,
                    letters: fairtrial_protocol::script::Letters::Alphanumeric,
                },
            ),
        ],
    };
    let parameters = ScriptLoad {
        endpoint: Endpoint::Sqlite {
            path: "never opened".into(),
            pragmas: [].into(),
            busy_timeout_ms: 0,
        },
        create: Vec::new(),
        fill: vec![fill("first", rows), fill("second", 2)],
        finish: Vec::new(),
        seed,
        threads: 1,
    };
    ScriptTables::new(&parameters).expect("rows that can be made")
}

fn keys(rows: &ScriptTables, unit: usize) -> Vec<i64> {
    let mut made = ScriptUnit::default();
    rows.fill(unit, &mut made);
    let key = |mut row: Box<dyn Iterator<Item = Value<'_>> + '_>| match row.next() {
        Some(Value::Integer(key)) => key,
        other => panic!("{other:?}"),
    };
    let batch = rows.batch(&made, 0).rows(2);
    batch.map(|row| key(Box::new(row))).collect()
}

#[test]
fn units_cover_every_row_of_every_table_once() {
    let rows = rows(ROWS_PER_UNIT + 1, 1);
    assert_eq!(rows.units(), 3);
    let last = i64::try_from(ROWS_PER_UNIT).expect("few");
    assert_eq!(keys(&rows, 0), (1..=last).collect::<Vec<_>>());
    assert_eq!(keys(&rows, 1), [last + 1]);
    assert_eq!(keys(&rows, 2), [1, 2]);
    let tables: Vec<_> = (0..3).map(|unit| rows.selections(unit)[0].0.name).collect();
    assert_eq!(tables, ["first", "first", "second"]);
}

#[test]
fn a_unit_s_rows_depend_on_the_seed_alone() {
    let digest = |seed, unit| {
        let rows = rows(ROWS_PER_UNIT + 1, seed);
        let mut made = ScriptUnit::default();
        rows.fill(0, &mut made); // whatever was made before
        rows.fill(unit, &mut made);
        content::of_batch(rows.tables()[0], rows.batch(&made, 0)).sha256
    };
    assert_eq!(digest(1, 1), digest(1, 1));
    assert_ne!(digest(1, 1), digest(2, 1));
}
