/// Copies of images that hold what a filter allows alone, or whose norms leave
/// out what it does not.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/tensor/ByteImage.h"
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

/// The same of an image or of that of 8 bits beside it, whichever the queries
/// are to be scanned in, as the device knows once their limits are made: one
/// for all tiles, as two copies and two scans take longer than either. Only if
/// an earlier call has not made it.
struct ListedImages {
    TensorImage from;
    TensorImage to;
    ByteImage fromBytes; ///< of meetsByteScan() dimensions
    ByteImage toBytes;   ///< its facts are not written
    SpreadRows rows;
    int d = 0;
    const int32_t* ids = nullptr;
    idx_t n = 0;
    /// [tiles] of ByteSearch; what is decided is written to them, so that all
    /// are up to mostCost, in 8 bits, or none is. nullptr: none is.
    uint32_t* costs = nullptr;
    uint32_t tiles = 0;
    uint32_t mostCost = 0;
    /// On the device: what the call before has left in `makes`, or nullptr, and
    /// another word.
    const uint32_t* made = nullptr;
    uint32_t* makes = nullptr;
};
void runListedImages(const ListedImages& images, cudaStream_t stream);

/// Enqueues a copy of an image's components in which rows whose vectors a
/// filter does not allow are NaN, so that they are in no strip (StripKeys). For
/// inner products, which have no norms.
///
/// ids, allowedBits  as runAllowedNorms
/// Cost              a read and a write of the components
void runAllowedRows(
        const TensorImage& from,
        int d,
        const int32_t* ids,
        idx_t n,
        const uint32_t* allowedBits,
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
