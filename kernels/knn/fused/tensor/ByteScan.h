/// The scans by L2 in integers of 8 bits, on Hopper: beside that of float16
/// numbers, for the tiles of queries that they are good for.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/tensor/TensorScanParams.h"

namespace faiss_bits {

/// What the scan of 8 bits has other than that of 16, beyond 512 components.
struct ByteScanParams {
    /// As of a scan of 16 bits, but: pieces are those of images of 8 bits,
    /// inverses the steps of queries, facts those of the vectors, and
    /// passed.limits go with their error. Norms are read, norm steps are not. A
    /// product, where they are kept, is the query's norm less the key.
    TensorScanParams scan;
    int slots; // of norms in shared memory
};

/// Appends what passes of the tiles of queries that have scan.tileCosts up to
/// scan.mostTileCost; chooses the stages of `scan`, and cuts it. Rows that pass
/// are those with not (fl(2 step step' P - |x|^2) < fl(|q|^2 - limit)), P being
/// the product of the bytes.
void launchByteScan(
        TensorScanParams scan,
        int multiprocessors,
        size_t sharedBytes,
        cudaStream_t stream);

/// The same up to kMostKeptByteComponents (ByteKeptScan.cuh): norms are
/// ByteImage::norms, and queries have the step of the vectors. Rows that pass
/// are those with P - N >= floor((|q|^2 - limit) / (2 step^2)), computed in
/// float64, and all where that is minus infinity or no number.
void launchByteKeptScan(
        TensorScanParams scan,
        const int32_t* norms,
        int multiprocessors,
        size_t sharedBytes,
        cudaStream_t stream);

} // namespace faiss_bits
