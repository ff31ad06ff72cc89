use super::*;
use crate::driver::Decimal;

fn written(value: Value<'_>, kind: u32) -> Result<Vec<u8>, DriverError> {
    let mut out = Vec::new();
    write_value(value, kind, &mut out).map(|()| out)
}

#[test]
fn values_travel_in_the_format_of_the_type_that_the_server_inferred() {
    let seven = Value::Integer(7);
    assert_eq!(
        written(seven, oid::INT4),
        Ok(b"\0\0\0\x04\0\0\0\x07".to_vec())
    );
    assert_eq!(written(seven, oid::INT2), Ok(b"\0\0\0\x02\0\x07".to_vec()));
    assert_eq!(
        written(seven, oid::INT8),
        Ok(b"\0\0\0\x08\0\0\0\0\0\0\0\x07".to_vec())
    );
    assert_eq!(written(seven, oid::NUMERIC), Ok(b"\0\0\0\x017".to_vec()));
    let money = Value::Decimal(Decimal::money(-105));
    assert_eq!(
        written(money, oid::NUMERIC),
        Ok(b"\0\0\0\x05-1.05".to_vec())
    );
    assert_eq!(
        written(Value::Text("ä"), 25),
        Ok("\0\0\0\x02ä".as_bytes().to_vec())
    );
    assert_eq!(written(Value::Null, oid::INT4), Ok(vec![0xFF; 4]));
}

#[test]
fn a_value_that_does_not_fit_its_type_is_refused_here() {
    assert!(written(Value::Integer(1 << 40), oid::INT4).is_err());
    assert!(written(Value::Integer(70_000), oid::INT2).is_err());
    assert!(written(Value::Text("7"), oid::INT4).is_err());
}

#[test]
fn a_bind_names_its_statement_its_formats_and_its_values() {
    let prepared = PreparedStatement {
        parameters: vec![oid::INT4, 25],
        columns: vec![oid::NUMERIC, oid::INT8],
    };
    let mut out = Vec::new();
    let values = [Value::Integer(1), Value::Text("x")];
    write_bind((12, &prepared), &values, &mut out).expect("two values for two");
    let expected: &[u8] =
        b"\x0012\0\0\x02\0\x01\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01x\0\x02\0\0\0\x01";
    assert_eq!(out, expected);
    assert!(write_bind((12, &prepared), &values[..1], &mut out).is_err());
}
