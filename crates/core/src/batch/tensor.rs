//! A dense block of numbers with a shape, which torch, JAX and numpy can read where it lies.
//!
//! Rows are laid out one after the other. The memory begins on a 64-byte line, because XLA copies what
//! does not. Elements are kept as bytes, so that concatenation and padding work alike for every type a
//! trainer may bring.

use bytemuck::{AnyBitPattern, NoUninit};
use std::fmt;

use super::BatchError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    Bool,
    U8,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    pub const ALL: [Self; 10] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    pub fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// As numpy calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The bytes of a number in this type, or `None` where it cannot be said exactly (-1 unsigned).
    pub(super) fn encode(self, value: f64) -> Option<Vec<u8>> {
        fn whole<T: TryFrom<i64> + NoUninit>(value: f64) -> Option<Vec<u8>> {
            let exact = value.fract() == 0.0 && value.abs() < 9e15;
            let number = T::try_from(exact.then_some(value as i64)?).ok()?;
            Some(bytemuck::bytes_of(&number).to_vec())
        }
        match self {
            Self::Bool => whole::<u8>(value).filter(|bytes| matches!(bytes.as_slice(), [0 | 1])),
            Self::U8 => whole::<u8>(value),
            Self::I8 => whole::<i8>(value),
            Self::I16 => whole::<i16>(value),
            Self::I32 => whole::<i32>(value),
            Self::I64 => whole::<i64>(value),
            Self::F16 => Some(half::f16::from_f64(value).to_ne_bytes().to_vec()),
            Self::BF16 => Some(half::bf16::from_f64(value).to_ne_bytes().to_vec()),
            Self::F32 => Some((value as f32).to_ne_bytes().to_vec()),
            Self::F64 => Some(value.to_ne_bytes().to_vec()),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that is one of the [`DType`]s.
pub trait Element: NoUninit + AnyBitPattern + PartialEq + Send + Sync {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),*) => { $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })* };
}
elements!(u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64, f32 => F32, f64 => F64);

/// A cache line: gives the memory its alignment.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    lines: Vec<Line>,
}

impl Tensor {
    pub fn zeros(dtype: DType, shape: &[usize]) -> Self {
        let len_bytes = shape.iter().product::<usize>() * dtype.size_bytes();
        let lines = bytemuck::zeroed_vec(len_bytes.div_ceil(size_of::<Line>()));
        Self { dtype, shape: shape.to_vec(), lines }
    }

    pub fn of<T: Element>(shape: &[usize], values: &[T]) -> Result<Self, BatchError> {
        let view = TensorView::of(shape, values)?;
        let mut tensor = Self::zeros(T::DTYPE, shape);
        tensor.bytes_mut().copy_from_slice(view.bytes);
        Ok(tensor)
    }

    /// Truths, one byte each.
    pub fn of_bools(shape: &[usize], values: &[bool]) -> Result<Self, BatchError> {
        let bytes: Vec<u8> = values.iter().map(|on| u8::from(*on)).collect();
        Ok(Self::of(shape, &bytes)?.read_as(DType::Bool))
    }

    /// The same bytes under another type of the same size.
    pub(super) fn read_as(mut self, dtype: DType) -> Self {
        self.reread_as(dtype);
        self
    }

    pub(super) fn reread_as(&mut self, dtype: DType) {
        debug_assert_eq!(self.dtype.size_bytes(), dtype.size_bytes(), "{} as {dtype}", self.dtype);
        self.dtype = dtype;
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn view(&self) -> TensorView<'_> {
        TensorView { dtype: self.dtype, shape: &self.shape, bytes: self.bytes() }
    }

    pub fn bytes(&self) -> &[u8] {
        let len = self.len_bytes();
        bytemuck::cast_slice(&self.lines).get(..len).unwrap_or_default()
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.len_bytes();
        bytemuck::cast_slice_mut(&mut self.lines).get_mut(..len).unwrap_or_default()
    }

    /// The elements, if `T` is their type. Truths read as bytes.
    pub fn values<T: Element>(&self) -> Option<&[T]> {
        self.is::<T>().then(|| bytemuck::try_cast_slice(self.bytes()).ok()).flatten()
    }

    pub fn values_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        self.is::<T>().then(|| bytemuck::try_cast_slice_mut(self.bytes_mut()).ok()).flatten()
    }

    /// Where the first element lies, for those who check that nothing was copied.
    pub fn address(&self) -> usize {
        self.lines.as_ptr().addr()
    }

    fn is<T: Element>(&self) -> bool {
        T::DTYPE == self.dtype || (T::DTYPE == DType::U8 && self.dtype == DType::Bool)
    }

    fn len_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size_bytes()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?})", self.dtype, self.shape)
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

/// Somebody's elements, looked at in place: ours, or those behind a numpy array.
#[derive(Clone, Copy, PartialEq)]
pub struct TensorView<'a> {
    dtype: DType,
    shape: &'a [usize],
    bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    pub fn new(dtype: DType, shape: &'a [usize], bytes: &'a [u8]) -> Result<Self, BatchError> {
        let expected = shape.iter().product::<usize>() * dtype.size_bytes();
        if bytes.len() != expected {
            return Err(BatchError::Bytes { dtype, shape: shape.to_vec(), len: bytes.len(), expected });
        }
        Ok(Self { dtype, shape, bytes })
    }

    pub fn of<T: Element>(shape: &'a [usize], values: &'a [T]) -> Result<Self, BatchError> {
        Self::new(T::DTYPE, shape, bytemuck::cast_slice(values))
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of the `nth` part along the first dimension.
    pub(super) fn row(&self, nth: usize) -> &'a [u8] {
        let len = self.row_bytes();
        self.bytes.get(nth * len..(nth + 1) * len).unwrap_or_default()
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.shape.iter().skip(1).product::<usize>() * self.dtype.size_bytes()
    }

    pub fn to_tensor(&self) -> Tensor {
        let mut tensor = Tensor::zeros(self.dtype, self.shape);
        tensor.bytes_mut().copy_from_slice(self.bytes);
        tensor
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorView({} {:?})", self.dtype, self.shape)
    }
}
