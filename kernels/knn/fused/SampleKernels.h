#pragma once

#include "kernels/knn/FlatKnn.h"

/// What is done to a sample of the vectors, and to queries that meet it.
namespace faiss_bits {

/// Enqueues the copy of a random sample of a problem's vectors to
/// out [samples, d], row-major: one from each of as many even parts, the same
/// ones in every run. Single vectors, as neighbours in memory are often alike.
/// samples <= n.
void runGatherSample(
        const FlatKnnProblem& problem,
        idx_t samples,
        float* out,
        cudaStream_t stream);

/// Enqueues out [samples]: the vectors of that sample of n, in the order in
/// which a second sample's image has them, neighbours far from each other
/// (spreadMember).
void runSampleIds(idx_t n, idx_t samples, int32_t* out, cudaStream_t stream);

/// Enqueues out [(samples + 31) / 32]: which of the first `samples` members of
/// such a sample, of `size` of n vectors, a filter allows; bits of both as
/// FlatKnnProblem::allowedBits. spread: members in the order of runSampleIds,
/// of a sample of `size`.
void runSampleBits(
        const uint32_t* allowedBits,
        idx_t n,
        idx_t size,
        idx_t samples,
        bool spread,
        uint32_t* out,
        cudaStream_t stream);

/// Enqueues center [d] = the mean of rows [n, d], to a precision of about their
/// standard deviation: vectors of small integers less the center are small
/// integers still. 0 where the mean is not finite. scratch: two floats.
void runCenter(
        const float* rows,
        idx_t n,
        int d,
        float* scratch,
        float* center,
        cudaStream_t stream);

/// Enqueues out [n, d] = rows - center, rounded to float32; in place too.
void runSubtract(
        const float* rows,
        idx_t n,
        int d,
        const float* center,
        float* out,
        cudaStream_t stream);

/// Enqueues rows [n, d] = rows / their lengths, in place; zeros where a length
/// is zero or not finite.
void runNormalize(float* rows, idx_t n, int d, cudaStream_t stream);

/// Enqueues out [n, d] = normalised rows - center, rounded to bfloat16, and
/// norms [n], their squares in float32 as TensorImageProblem::inverseNorms has
/// them: 1 more of rows that are zeros.
void runNormalizedSample(
        const float* rows,
        idx_t n,
        int d,
        const float* center,
        void* out,
        float* norms,
        cudaStream_t stream);

/// Enqueues out [count] = values, rounded to bfloat16.
void runToBFloat16(
        const float* values,
        idx_t count,
        void* out,
        cudaStream_t stream);

} // namespace faiss_bits
