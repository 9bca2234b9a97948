#pragma once

#include <vector>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/many/PartSet.h"

/// Which queries each device searches. Not part of the API.
namespace faiss_bits::gpu::detail {

/// An array of the caller's, in rows.
struct CallArray {
    CallArray(
            const GpuContext& home,
            const char* name,
            const void* given,
            size_t rowBytes);

    char* data;
    size_t rowBytes;
    bool onHost; ///< or a null pointer
};

/// Queries and results of a search; the last may be null pointers.
struct CallArrays {
    CallArray x;
    CallArray distances;
    CallArray labels;

    /// None lies on the host.
    bool areOnDevice() const;
    /// All do, or are null.
    bool areOnHost() const;
};

/// Seconds that a search of so many queries on another device ends later than
/// on the first, by what depends on no device's speed: until its thread has
/// them, and for copies.
double secondsOfCopies(
        const PartSet& set,
        idx_t rows,
        const CallArrays& arrays);

/// Queries that each of so many groups is late by, of `rows` a group. All but
/// the first are by `late`, and they end one after the other, each a turn of so
/// many queries before the next one, if that takes none of them more than a
/// sixteenth of its own; else in shorter turns.
std::vector<idx_t> lateRowsOf(
        size_t groups,
        idx_t rows,
        double late,
        double turn);

/// Pieces of another device's slice, so that results of one go home while the
/// next one is searched.
int piecesHome(idx_t rows, const CallArrays& arrays);

/// Where piece `piece` of so many begins; of number `pieces`: the end. The last
/// one, whose way home nothing hides, has the fewest queries that are worth a
/// search.
idx_t pieceBegin(idx_t rows, int pieces, int piece);

/// What groupSlices() is for, where a search takes as long for a part of a tile
/// of `tile` rows as for a whole one: slices but the first have whole tiles.
/// The nearest of even slices, or what ends earliest where that ends by a
/// quarter of a tile earlier.
std::vector<idx_t> tileSlices(
        idx_t rows,
        const std::vector<int>& partsOfGroups,
        const std::vector<idx_t>& lateRows,
        const std::vector<double>& speeds,
        idx_t tile);

/// Slices with their borders moved by half a step at most, so that all but the
/// first have a multiple of `step` rows.
std::vector<idx_t> inSteps(std::vector<idx_t> begins, idx_t step);

/// Where the slices of groups begin, and the end. A call begins for the times
/// of the set, if all arrays lie on the device.
///
/// secondsPerRow  of a query, about: groups that need copies get fewer. 0: not
///                known
/// mayCut         results go home in pieces
std::vector<idx_t> replicaSlices(
        const PartSet& set,
        idx_t n,
        double secondsPerRow,
        const CallArrays& arrays,
        bool mayCut);

} // namespace faiss_bits::gpu::detail
