/// All pairs of queries and vectors by tensor cores, compared with a limit a
/// query; distances are never written.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Types.h"
#include "kernels/knn/fused/PassedLists.h"
#include "kernels/knn/fused/tensor/ByteImage.h"
#include "kernels/knn/fused/tensor/NearestStrips.h"
#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/StripKeys.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// The kernels of a scan; they differ in speed alone.
enum class TensorScanKernel : uint8_t {
    Auto,
    Wgmma,   ///< Hopper: compute capability 9.0
    MmaSync, ///< 8.0 and later
};

struct TensorScanProblem {
    Metric metric = Metric::L2; ///< L2, InnerProduct or Cosine
    idx_t numQueries = 0;
    idx_t numVectors = 0; ///< below 2^32 - 1024
    int d = 0;
    TensorImage queries; ///< of at least numQueries rows; for L2 and cosine
                         ///< made with the facts of the vectors (else all may
                         ///< pass)
    TensorImage vectors; ///< of at least numVectors rows, written to there
    SpreadRows rows;     ///< which vectors the rows of that are
    /// [numQueries] TensorImageProblem::outNorms: L2 and cosine.
    const float* queryNorms = nullptr;
    /// Bit i % 32 of word i / 32: vector i may pass. nullptr: all may.
    const uint32_t* allowedBits = nullptr;
    PassedLists passed;
    /// Of a query, as far as is known: kernels may suit it. The result does not
    /// depend on it.
    double passing = 0;
    TensorScanKernel kernel = TensorScanKernel::Auto;
    /// TensorScanParams::tileCosts: what runByteScan() takes is left to it. By
    /// Wgmma, L2, where meetsByteScan().
    const uint32_t* tileCosts = nullptr;
    uint32_t mostTileCost = 0;
};

/// Appends to the list of every query the vectors that pass.
///
/// Passes   what is allowed and has not key > limit, where
///            L2             key = |x|^2 + |q|^2 - 2 <x', q'>
///            InnerProduct   key = -<x', q'>
///            Cosine         as L2, of images of normalised rows: 2 - 2 cos
///          in float32, x' and q' as the images have them; so NaN passes.
///          TensorScanBound.h says how far a key is from the exact one.
/// Result   counts[i] rises by the number that passed; columns in any order,
///          those beyond the capacity are not stored; no pair passes twice
/// Stream   enqueues one kernel, never waits; safe under graph capture
/// Memory   none beyond the images
/// Errors   throws Error for a bad argument or a failed launch; Wgmma on a
///          device, or in a build, that lacks it
/// Cost     2 numQueries numVectors d operations of float16 tensor cores, with
///          d rounded up to 16
void runTensorScan(
        const TensorScanProblem& problem,
        const DeviceTraits& device,
        cudaStream_t stream);

/// Appends to the lists of the queries whose tiles have costs of no more than
/// mostTileCost what passes by images of 8 bits (ByteScan.h); L2, on Hopper.
/// The problem has limits of their own, of queries and vectors what is written
/// to the lists, norms, and their order; pieces are not read.
///
/// Passes   as runTensorScan, x' and q' as the images of 8 bits have them
/// Others   as runTensorScan
/// Cost     as runTensorScan, in 8 bits; d rounded up to 32, beyond 512 to 128
void runByteScan(
        const TensorScanProblem& problem,
        const ByteImage& queries,
        const ByteImage& vectors,
        const DeviceTraits& device,
        cudaStream_t stream);

/// Strips of vectors that each query has in a scan for the nearest, of so many
/// queries: 4 to 256, of so few that their blocks would not fill the GPU some
/// thousand. Host only, no CUDA call.
uint32_t nearestStripsOf(
        idx_t numQueries,
        idx_t numVectors,
        int d,
        TensorScanKernel kernel,
        const DeviceTraits& device);

/// Finds the nearest vectors of every query and strip; `passed` and
/// `allowedBits` of the problem are not read.
///
/// Result   nearest.strips and rests, whose perRow is that of nearestStripsOf
///          for these numQueries
/// Limits   numVectors up to kMostNearestVectors
/// Others   as runTensorScan; with norms by wgmma, vectors that the scale of
///          the norms is not for seem nearer than they are
/// Cost     as runTensorScan; 4 operations a pair beside the product's
void runNearestScan(
        const TensorScanProblem& problem,
        const NearestStrips& nearest,
        const DeviceTraits& device,
        cudaStream_t stream);

/// Strips for a scan of so many queries at a time: leastStrips or more, as far
/// as there are vectors. Host only, no CUDA call.
StripPlan planStrips(
        idx_t numQueries,
        idx_t numVectors,
        int d,
        uint32_t leastStrips,
        TensorScanKernel kernel,
        const DeviceTraits& device);

/// Finds the least key of every query and strip; `passed` and `allowedBits` of
/// the problem are not read.
///
/// plan     of planStrips, for these vectors and any number of queries
/// keys     [numQueries, plan.perRow], 16-byte aligned: StripKeys
/// Others   as runTensorScan; vectors whose keys are NaN are passed over, and
///          with norms by wgmma those that the scale of the norms is not for
///          seem nearer than they are
/// Cost     as runTensorScan
void runStripScan(
        const TensorScanProblem& problem,
        const StripPlan& plan,
        float* keys,
        const DeviceTraits& device,
        cudaStream_t stream);

/// Numbers of tiles have 16 bits.
constexpr idx_t kMostNearestVectors = idx_t(1) << 21;

/// True if this build has the kernel and such a device can run it.
bool hasTensorScan(TensorScanKernel kernel, const DeviceTraits& device);

/// Whether scans, but by MmaSync, take PassedLists::products. A product is
/// <x', q'>, by L2 less half of |x|^2, in the units of the images; where the
/// scales of norms and images do not suit each other, and all passes, anything.
bool canKeepProducts(const DeviceTraits& device);

/// Whether in scans of d components by Wgmma the queries stream too.
bool isStreamedScan(int d);

/// Whether runByteScan() takes d components, and scans of 16 bits leave it
/// tiles.
bool meetsByteScan(int d);

} // namespace faiss_bits
