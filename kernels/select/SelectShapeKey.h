#pragma once

#include <tuple>

#include "kernels/select/Select.h"

namespace faiss_bits {

/// What plans are made from: all of a problem but its pointers, and of those
/// which there are. Problems of one key share a plan. A new member has to be
/// named here to compile.
inline auto shapeKey(const SelectProblem& problem) {
    // clang-format would make one line of the names.
    // clang-format off
    const auto& [rows, cols, k, keyType, largest, sorted, dropNan, algorithm,
                 keys, rowStride, ids, idStride, sharedIds, idOffset, idType,
                 colBias, rowBias, clampAtZero, negated, idsGiven, colBiasGiven,
                 rowBiasGiven, outKeys, outIds, outStride, device] = problem;
    // clang-format on
    const auto& [capability, multiprocessors, shared, blockShared, single] =
            device;
    return std::tuple(
            rows,
            cols,
            k,
            keyType,
            largest,
            sorted,
            dropNan,
            algorithm,
            rowStride,
            idStride,
            sharedIds,
            idOffset,
            idType,
            clampAtZero,
            negated,
            problem.hasIds(),
            problem.hasColBias(),
            problem.hasRowBias(),
            outStride,
            capability,
            multiprocessors,
            shared,
            blockShared,
            single);
}

using SelectShapeKey = decltype(shapeKey({}));

} // namespace faiss_bits
