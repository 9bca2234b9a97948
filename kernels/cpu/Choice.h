#pragma once

#include <cstdint>
#include <string>

namespace faiss_bits::cpu {

/// Where a search selects from its distances (Yu et al. 2015, section 2.3).
enum class Variant : uint8_t {
    Auto,
    /// After the first loop, as `Var1`, into a buffer of candidates a query
    /// that is cut to k when it is full: the fastest for most k; not in the
    /// paper.
    Buffered,
    Var1, ///< after the first loop: binary heap behind a vector pre-filter
    Var5, ///< after the fifth loop: a block of distances, 4-ary heap
    /// After the sixth loop: all distances of some queries; 4-ary heap, or a
    /// bisection and a sort where a fifth of the vectors is wanted, or more (of
    /// several blocks of vectors: more than a quarter).
    Var6,
    /// No packing: every vector is read once and met by all queries. Not in the
    /// paper. Chosen by the shape alone (1 or 2 queries, up to 4 from 384
    /// components on), as it rounds differently; the others agree on every bit.
    /// Not of Canberra, BrayCurtis, JensenShannon and Jaccard.
    Direct,
};

/// What finds the candidates of a certified search, whose result does not
/// depend on it.
enum class Arithmetic : uint8_t {
    Auto,
    Components, ///< that of a plain search
    /// Products of components that are rounded to 16-bit integers: up to twice
    /// as fast. L2 and inner product of float32, not Direct, and not on targets
    /// without such instructions (SCALAR; processors other than x86).
    Int16,
    /// No candidates: canonical distances of all pairs by matrix instructions
    /// on bytes (AMX), where k is a large part of n. L2 and inner product of
    /// float32, not Direct, on processors that have them.
    Bytes,
    /// The same by float64 products, on any processor: where vectors are short
    /// and k is a large part of n, or where vectors are few. With Direct, of
    /// rows as they are: where pairs are fewer still; up to 2^20 vectors.
    Doubles,
};

/// "auto", "components", "int16", "bytes", "doubles".
const char* nameOf(Arithmetic arithmetic);
/// The reverse. Throws Error for a name that it does not know.
Arithmetic arithmeticOf(const std::string& name);

/// A name as in plans and benches: "auto", "buffered", "var1", "var5", "var6",
/// "direct".
const char* nameOf(Variant variant);
/// The reverse of nameOf. Throws Error for a name that it does not know.
Variant variantOf(const std::string& name);

/// What a caller may force; zeros and empty: the cost model's choice. Blocks
/// are rounded up to whole tiles. A range search takes Buffered (candidates
/// under the radius are appended) and Direct.
struct Choice {
    Variant variant = Variant::Auto;          ///< where to select
    Arithmetic arithmetic = Arithmetic::Auto; ///< of certified searches
    int queryBlock = 0;  ///< m_c: most queries packed at a time by a thread
    int vectorBlock = 0; ///< n_c: vectors packed at a time for all threads
    /// d_c: components packed at a time. Not of canonical distances of whole
    /// blocks, which take all.
    int depthBlock = 0;
    /// Instruction set, one of targetNames(); empty: the best that runs here.
    /// The environment's FAISS_BITS_CPU_TARGET stands in for an empty one.
    std::string target;
};

} // namespace faiss_bits::cpu
