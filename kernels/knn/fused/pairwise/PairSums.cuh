/// Sums of pairs whose components all lie in registers, for small d.
#pragma once

#include "kernels/knn/pairwise/PairwiseStage.cuh"
#include "kernels/knn/pairwise/PairwiseTerms.cuh"

namespace faiss_bits {

/// All components of a row as they are in memory; zeros behind d, and
/// everywhere if there is no such row.
template <int Padded>
__device__ __forceinline__ void loadRow(
        const PairwiseRows& rows,
        idx_t row,
        int d,
        float (&out)[Padded]) {
    const bool exists = row < rows.count;
    const uint8_t* from = rowPointer(rows, exists ? row : 0);
    const int there = exists ? d : 0;
    if (rows.type == DataType::Float32 && rows.columnStride == 1 &&
        (!rows.quads || Padded < 4)) {
        const float* values = reinterpret_cast<const float*>(from);
#pragma unroll
        for (int c = 0; c < Padded; ++c) {
            out[c] = c < there ? __ldg(values + c) : 0.0f;
        }
        return;
    }
#pragma unroll
    for (int c = 0; c < Padded; c += 4) {
        const float4 four = widenQuad(rows, loadQuad(rows, from, c, there));
        const float v[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4 && c + j < Padded; ++j) {
            out[c + j] = v[j];
        }
    }
}

/// Turns components into what the term's add() takes.
template <class Term, int Padded>
__device__ __forceinline__ void stageRow(
        float (&row)[Padded],
        float (&logs)[Term::kLogs ? Padded : 1]) {
#pragma unroll
    for (int c = 0; c < Padded; ++c) {
        if constexpr (Term::kLogs) {
            logs[c] = Term::logOf(row[c]);
        }
        row[c] = Term::staged(row[c]);
    }
}

/// Components c to c + Step - 1, of those of `Padded`.
template <int Step, int Padded>
__device__ __forceinline__ void takeStep(
        float (&out)[Step],
        const float (&from)[Padded],
        int c) {
#pragma unroll
    for (int s = 0; s < Step; ++s) {
        out[s] = from[c + s];
    }
}

/// Adds components c to c + kStep - 1 of a pair to its sum, or starts it where
/// c is 0. Logarithms are read where the term has them.
template <class Term, int Step, int Padded>
__device__ __forceinline__ void addComponents(
        float& sum,
        const float (&x)[Step],
        const float (&logX)[Step],
        const float (&q)[Padded],
        const float (&logQ)[Term::kLogs ? Padded : 1],
        int c,
        float power) {
    float ofQ[Step];
    takeStep(ofQ, q, c);
    if constexpr (Term::kLogs) {
        float logs[Step];
        takeStep(logs, logQ, c);
        sum = c == 0 ? 0.0f : sum;
        Term::add(sum, x, ofQ, logX, logs);
    } else if constexpr (requires { Term::start(x, ofQ); }) {
        if (c == 0) {
            sum = Term::start(x, ofQ);
        } else {
            Term::add(sum, x, ofQ, power);
        }
    } else {
        sum = c == 0 ? 0.0f : sum;
        Term::add(sum, x, ofQ, power);
    }
}

/// The key of a pair that is not fit, by the term's second sum; x and q are as
/// they are in memory.
template <class Term, int Padded>
__device__ __forceinline__ float secondKey(
        const float (&x)[Padded],
        const float (&q)[Padded],
        float power) {
    using Second = typename Term::Second;
    static_assert(Second::kStep == 1);
    float first = 0.0f;
    float second = 0.0f;
#pragma unroll
    for (int c = 0; c < Padded; ++c) {
        const float ofX[1] = {x[c]};
        const float ofQ[1] = {q[c]};
        if constexpr (Term::kUnfitOfBoth) {
            Term::add(first, ofX, ofQ, power);
        }
        Second::add(second, ofX, ofQ, power);
    }
    return Term::finishUnfit(first, second);
}

} // namespace faiss_bits
