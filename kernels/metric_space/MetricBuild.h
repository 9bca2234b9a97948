#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/metric_space/MetricSpace.h"

/// Makes indexes for metric spaces on the GPU: the same bits as
/// kernels/metric_space/cpu. Vectors lie on the current device, results on the
/// host; every call waits for the stream.
namespace faiss_bits::metric_space {

/// Scratch bytes of buildListOfClustersOnGpu: about 50 a vector. Asks the
/// device what sorting takes.
size_t listOfClustersWorkspaceBytes(idx_t n);

/// Makes the list.
///
/// Cost     n^2 / (2 (bucketSize + 1)) canonical distances, and as many sorted
///          keys; about ten launches a cluster
/// Errors   Error naming a bad argument, and what `interrupt` throws
ListOfClusters buildListOfClustersOnGpu(
        const MetricVectors& vectors,
        const ListOfClustersOptions& options,
        Workspace workspace,
        cudaStream_t stream,
        const Interrupt& interrupt = nullptr);

/// Scratch bytes of buildPivotsOnGpu, likewise.
size_t pivotsWorkspaceBytes(idx_t n);

/// The same of pivots and the order, without the table of distances, of which
/// searches on the GPU need bounds alone (MetricGroups.h).
PivotTable buildPivotsOnGpu(
        const MetricVectors& vectors,
        const PivotOptions& options,
        Workspace workspace,
        cudaStream_t stream,
        const Interrupt& interrupt = nullptr);

} // namespace faiss_bits::metric_space
