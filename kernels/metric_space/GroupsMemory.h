#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/metric_space/MetricGroups.h"

namespace faiss_bits::metric_space {

/// Memory of the current device; throws where there is none left.
using Allocate = std::function<std::shared_ptr<void>(size_t bytes)>;

/// The groups of an index with the memory that they lie in: a copy of the
/// vectors in their order, and what searches want to know of groups.
///
/// Stream   calls wait for it
/// Errors   Error for a failed CUDA call, and what `allocate` throws
class GroupsMemory {
   public:
    /// No vectors.
    GroupsMemory() = default;

    /// Buckets of a list. vectors.data is on the device, by ids.
    GroupsMemory(
            const MetricVectors& vectors,
            const ListOfClusters& list,
            const Allocate& allocate,
            cudaStream_t stream);

    /// Groups of groupSize neighbours in the order of a table, whose distances
    /// are not read.
    GroupsMemory(
            const MetricVectors& vectors,
            const PivotTable& table,
            int groupSize,
            const Allocate& allocate,
            cudaStream_t stream);

    /// All vectors, for brute force.
    GroupsMemory(
            const MetricVectors& vectors,
            const Allocate& allocate,
            cudaStream_t stream);

    /// What Mapping::QueryMajor needs: 4 (d + pivots) bytes a vector more. A
    /// second call does nothing.
    void makeColumns(const Allocate& allocate, cudaStream_t stream);

    /// Until this goes, or its columns are made.
    const MetricGroups& groups() const {
        return groups_;
    }

   private:
    template <class T>
    T* take_(const Allocate& allocate, size_t count);
    template <class T>
    T* upload_(
            const Allocate& allocate,
            const std::vector<T>& values,
            cudaStream_t stream);
    /// Vectors of these ids.
    float* gather_(
            const MetricVectors& vectors,
            const int32_t* ids,
            idx_t count,
            const Allocate& allocate,
            cudaStream_t stream);
    /// Bounded groups of `size`, then groups of the rest.
    void setPlaces_(
            const MetricVectors& vectors,
            const std::vector<idx_t>& bounded,
            const std::vector<idx_t>& rest,
            size_t numBounded,
            int size,
            const Allocate& allocate,
            cudaStream_t stream);
    void setReferences_(
            const MetricVectors& vectors,
            const std::vector<idx_t>& ids,
            const Allocate& allocate,
            cudaStream_t stream);

    MetricGroups groups_;
    std::vector<std::shared_ptr<void>> memory_;
};

/// out [count, d] = rows `ids` of vectors [any, d].
void runGatherRows(
        const float* vectors,
        const int32_t* ids,
        idx_t count,
        int d,
        float* out,
        cudaStream_t stream);

} // namespace faiss_bits::metric_space
