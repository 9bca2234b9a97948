#pragma once

namespace faiss_bits {

/// Columns that a kernel of short rows holds at a time if it takes rows of
/// more. Others see a row at once, and have no code for what is kept of chunks
/// before: it costs them registers.
constexpr int kShortChunkColumns = 1024;

} // namespace faiss_bits
