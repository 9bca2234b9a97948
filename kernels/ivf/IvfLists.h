#pragma once

#include <cstdint>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// How the vectors of a list lie in memory.
enum class ListLayout : uint8_t {
    Rows,       ///< [vector][component]
    Interleaved ///< [vector / 32][component][vector % 32], padded to 32
};

/// What the id of a vector of a list is.
enum class ListIds : uint8_t {
    Given64, ///< int64 numbers in memory, one array a list
    Given32, ///< the same of int32
    Places   ///< list << 32 | place in the list
};

/// What a list has of a vector.
enum class ListCoding : uint8_t {
    Float32,
    Float16,
    Scalar8, ///< a code of 8 bits for every component
    Scalar6, ///< interleaved only
    Scalar4,
    Product ///< a code for every part of a vector
};

/// Whether components are scalar codes of a trained range.
constexpr bool isScalar(ListCoding coding) {
    return coding == ListCoding::Scalar8 || coding == ListCoding::Scalar6 ||
            coding == ListCoding::Scalar4;
}

/// How codes of lists become vectors. Every operation is one of float32,
/// rounded once: with
///
///     step = range / most          (most = 2^bits - 1)
///     start = least + 0.5 * step
///
/// a Scalar code is fma(code, step, start), and a Product code is some
/// components of the codebook. Codes lie as components do (ListLayout), the
/// first in the lowest bits; in Rows of fewer than 8 bits side by side, and
/// every vector begins on a byte; interleaved those of 32 vectors side by side.
struct ListDecoding {
    /// Of a Scalar coding least [ranges], then range [ranges], float32;
    /// nullptr: the codes are the components.
    const float* trained = nullptr;
    int ranges = 0; ///< d, or 1: the same of all components
    /// step is range * (1 / most), of two roundings, not range / most.
    bool byInverse = true;

    int numParts = 0; ///< Product: codes of a vector, which divides d
    int partBits = 8; ///< Product: 8, or interleaved 4 to 8
    const float* codebook = nullptr; ///< [numParts, 2^partBits, d / numParts]

    /// Of every list [numLists, d] float32: what is added to its vectors, which
    /// are rounded to float32 first; nullptr: nothing.
    const float* centroids = nullptr;
};

/// A set of ids in which kernels look ids up as they read lists.
struct ListIdTest {
    /// How the set is told.
    enum class Kind : uint8_t {
        None, ///< every id is in it: nothing is looked up
        Bits, ///< bit id % 8 of byte id / 8, of numBytes; no other id
        Range ///< the ids first .. end - 1
    };
    Kind kind = Kind::None;         ///< of the set
    bool isInverted = false;        ///< all ids but those
    const uint8_t* bytes = nullptr; ///< Bits: on the device
    idx_t numBytes = 0;             ///< Bits: length of bytes
    idx_t first = 0;                ///< Range: the first id
    idx_t end = 0;                  ///< Range: one behind the last

    /// Whether ids are looked up.
    bool isThere() const {
        return kind != Kind::None;
    }
};

/// Inverted lists as they lie on the device. Arrays have numLists elements.
struct IvfLists {
    idx_t numLists = 0; ///< 1 or more, below 2^31
    int d = 0;          ///< components of a vector, 1 or more
    /// Of all lists together, or more; below 2^36.
    idx_t numVectors = 0;
    ListLayout layout = ListLayout::Interleaved; ///< of all lists

    ListCoding coding = ListCoding::Float32; ///< of all lists
    ListDecoding decoding;                   ///< not read for Float32
    /// Of every list its vectors, or their codes; of an empty one anything.
    const void* const* vectors = nullptr;
    /// Of every list its number of vectors, below 2^31: int64, or int32.
    const void* lengths = nullptr;
    bool lengths64 = true; ///< lengths are int64

    ListIds idKind = ListIds::Given64; ///< of all lists
    /// Of every list its ids; not read where they are Places.
    const void* const* ids = nullptr;

    /// What a search may find: bit v % 32 of word v / 32 of a list, for its
    /// vector v (IvfFilterBits.h makes them). nullptr: all.
    const uint32_t* selectedBits = nullptr;
    /// Where the words of each list begin, and end: [numLists + 1]. nullptr:
    /// list l begins at word l * wordsOfList.
    const uint32_t* firstWords = nullptr;
    uint32_t wordsOfList = 0; ///< words of a list, where all have as many

    /// In place of selectedBits, for direct searches (IvfKnnPlan::direct)
    /// alone, which look up the ids of the lists that they read: what a search
    /// may find, by the ids that idKind says.
    ListIdTest idTest;
};

} // namespace faiss_bits
