#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// Enqueues a copy of some rows of an image of vectors, in the order of their
/// ids: a scan of it reads nothing of the others. An id of -1 becomes a row
/// that no finite limit of L2 lets pass; products with it are 0.
///
/// from, to  images of vectors with the same d; `to` has room for n rows and
///           gets the scales of `from`, whose facts it shares
/// ids       [n] vectors, on the device
/// rows      which vectors the rows of `from` are; row i of `to` is ids[i]
/// Cost      one read and one write of the rows
void runListedImage(
        const TensorImage& from,
        const SpreadRows& rows,
        int d,
        const int32_t* ids,
        idx_t n,
        const TensorImage& to,
        cudaStream_t stream);

/// Enqueues the norms of an image's rows, and their norm steps, to those of
/// `to`; infinite ones for rows whose vectors a filter does not allow, so that
/// they are in no strip (StripKeys). Components are shared.
///
/// ids          [n] the vectors of the rows, on the device
/// allowedBits  bit i % 32 of word i / 32 is that of vector i
/// allowed      one number, on the device: how many of the n are, or nullptr
/// Cost         a read and a write of the norms
void runAllowedNorms(
        const TensorImage& from,
        const int32_t* ids,
        idx_t n,
        const uint32_t* allowedBits,
        const TensorImage& to,
        uint32_t* allowed,
        cudaStream_t stream);

} // namespace faiss_bits
