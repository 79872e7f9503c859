//! Tables of plain columns as Parquet files: no nulls, no nesting, units in the key-value metadata.
//!
//! Metadata: `etime.version`, and `unit.<column>` for every column.

use super::error::{BoxError, RunDirError};
use super::manifest::VERSION;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are held in memory and written as one row group.
const ROW_GROUP_ROWS: usize = 65_536;

/// How a column is read off a row.
pub(super) enum Cell<R> {
    Text(fn(&R) -> &'static str),
    U32(fn(&R) -> u32),
    U64(fn(&R) -> u64),
    F64(fn(&R) -> f64),
}

pub(super) struct Column<R> {
    pub name: &'static str,
    /// "1" for a pure number, "" for text.
    pub unit: &'static str,
    pub cell: Cell<R>,
}

/// Writes `rows` as one file; the bytes depend on nothing but the values.
pub(super) fn write_table<R>(
    out: &mut (dyn Write + Send),
    columns: &[Column<R>],
    rows: impl Iterator<Item = R>,
) -> Result<(), BoxError> {
    let mut writer =
        SerializedFileWriter::new(out, schema(columns)?, Arc::new(properties(columns)))?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let group_rows: Vec<R> = rows.by_ref().take(ROW_GROUP_ROWS).collect();
        let mut group = writer.next_row_group()?;
        for column in columns {
            write_column(&mut group, &column.cell, &group_rows)?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn schema<R>(columns: &[Column<R>]) -> Result<Arc<Type>, BoxError> {
    let fields = columns
        .iter()
        .map(|column| {
            let unsigned = |bit_width| LogicalType::integer(bit_width, false);
            let (physical, logical) = match column.cell {
                Cell::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Cell::U32(_) => (Physical::INT32, Some(unsigned(32))),
                Cell::U64(_) => (Physical::INT64, Some(unsigned(64))),
                Cell::F64(_) => (Physical::DOUBLE, None),
            };
            let field = Type::primitive_type_builder(column.name, physical)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(logical)
                .build()?;
            Ok(Arc::new(field))
        })
        .collect::<Result<Vec<_>, BoxError>>()?;
    let root = Type::group_type_builder("etime")
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(root))
}

fn properties<R>(columns: &[Column<R>]) -> WriterProperties {
    let mut metadata = vec![KeyValue::new(
        "etime.version".to_string(),
        VERSION.to_string(),
    )];
    metadata.extend(
        columns
            .iter()
            .map(|c| KeyValue::new(format!("unit.{}", c.name), c.unit.to_string())),
    );
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_key_value_metadata(Some(metadata));
    for column in columns {
        // Measured numbers hardly repeat: a dictionary of them costs more than it saves.
        if matches!(column.cell, Cell::F64(_)) {
            builder = builder.set_column_dictionary_enabled(column.name.into(), false);
        }
    }
    builder.build()
}

fn write_column<R, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cell: &Cell<R>,
    rows: &[R],
) -> Result<(), BoxError> {
    match cell {
        Cell::Text(get) => {
            write_values::<ByteArrayType, _>(group, rows.iter().map(|r| ByteArray::from(get(r))))
        }
        Cell::U32(get) => {
            write_values::<Int32Type, _>(group, rows.iter().map(|r| get(r).cast_signed()))
        }
        Cell::U64(get) => {
            write_values::<Int64Type, _>(group, rows.iter().map(|r| get(r).cast_signed()))
        }
        Cell::F64(get) => write_values::<DoubleType, _>(group, rows.iter().map(get)),
    }
}

fn write_values<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), BoxError> {
    let mut column = group
        .next_column()?
        .ok_or("more columns were written than the schema has")?;
    let values: Vec<T::T> = values.collect();
    column.typed::<T>().write_batch(&values, None, None)?;
    Ok(column.close()?)
}

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Text(Vec<String>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

impl Values {
    fn kind(&self) -> &'static str {
        match self {
            Values::Text(_) => "text",
            Values::U32(_) => "u32",
            Values::U64(_) => "u64",
            Values::F64(_) => "f64",
        }
    }
}

/// A table of a run directory, in memory.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    pub rows: usize,
    pub metadata: BTreeMap<String, String>,
    /// By name, in file order.
    pub columns: Vec<(String, Values)>,
}

impl Table {
    /// Reads a file that this project wrote.
    pub fn read(path: &Path) -> Result<Table, RunDirError> {
        Self::read_columns(path).map_err(|source| RunDirError::Read {
            path: path.to_path_buf(),
            source,
        })
    }

    fn read_columns(path: &Path) -> Result<Table, BoxError> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let meta = reader.metadata();
        let rows = usize::try_from(meta.file_metadata().num_rows())?;
        let metadata = meta.file_metadata().key_value_metadata();
        let metadata = metadata.into_iter().flatten();
        let schema = meta.file_metadata().schema_descr();
        let columns = (0..schema.num_columns())
            .map(|i| {
                let name = schema.column(i).name().to_string();
                let values =
                    read_column(&reader, i).map_err(|e| format!("column `{name}`: {e}"))?;
                Ok((name, values))
            })
            .collect::<Result<Vec<_>, BoxError>>()?;
        Ok(Table {
            path: path.to_path_buf(),
            rows,
            metadata: metadata
                .map(|kv| (kv.key.clone(), kv.value.clone().unwrap_or_default()))
                .collect(),
            columns,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    fn missing(&self, column: &str, wanted: &'static str) -> RunDirError {
        let held: Vec<String> = self
            .columns
            .iter()
            .map(|(name, values)| format!("{name}: {}", values.kind()))
            .collect();
        RunDirError::NoColumn {
            path: self.path.clone(),
            column: column.to_string(),
            wanted,
            held: held.join(", "),
        }
    }

    pub fn text(&self, name: &str) -> Result<&[String], RunDirError> {
        match self.column(name) {
            Some(Values::Text(values)) => Ok(values),
            _ => Err(self.missing(name, "text")),
        }
    }

    pub fn u32(&self, name: &str) -> Result<&[u32], RunDirError> {
        match self.column(name) {
            Some(Values::U32(values)) => Ok(values),
            _ => Err(self.missing(name, "u32")),
        }
    }

    pub fn u64(&self, name: &str) -> Result<&[u64], RunDirError> {
        match self.column(name) {
            Some(Values::U64(values)) => Ok(values),
            _ => Err(self.missing(name, "u64")),
        }
    }

    pub fn f64(&self, name: &str) -> Result<&[f64], RunDirError> {
        match self.column(name) {
            Some(Values::F64(values)) => Ok(values),
            _ => Err(self.missing(name, "f64")),
        }
    }
}

/// Column `i` over all row groups.
fn read_column(reader: &SerializedFileReader<File>, i: usize) -> Result<Values, BoxError> {
    let physical = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .column(i)
        .physical_type();
    let mut values = match physical {
        Physical::BYTE_ARRAY => Values::Text(Vec::new()),
        Physical::INT32 => Values::U32(Vec::new()),
        Physical::INT64 => Values::U64(Vec::new()),
        Physical::DOUBLE => Values::F64(Vec::new()),
        other => return Err(format!("type {other} is in no table of etime").into()),
    };
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows())?;
        match (&mut values, group.get_column_reader(i)?) {
            (Values::Text(all), ColumnReader::ByteArrayColumnReader(column)) => {
                for text in read_values(column, rows)? {
                    all.push(text.as_utf8()?.to_string());
                }
            }
            (Values::U32(all), ColumnReader::Int32ColumnReader(column)) => {
                all.extend(
                    read_values(column, rows)?
                        .into_iter()
                        .map(i32::cast_unsigned),
                );
            }
            (Values::U64(all), ColumnReader::Int64ColumnReader(column)) => {
                all.extend(
                    read_values(column, rows)?
                        .into_iter()
                        .map(i64::cast_unsigned),
                );
            }
            (Values::F64(all), ColumnReader::DoubleColumnReader(column)) => {
                all.extend(read_values(column, rows)?);
            }
            _ => return Err("row groups disagree on the type".into()),
        }
    }
    Ok(values)
}

fn read_values<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<T::T>, BoxError> {
    let mut values = Vec::with_capacity(rows);
    column.read_records(rows, None, None, &mut values)?;
    if values.len() == rows {
        Ok(values)
    } else {
        Err(format!("{rows} rows are declared, {} are there", values.len()).into())
    }
}
