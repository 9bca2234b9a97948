#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/metric_space/MetricGroups.h"

namespace faiss_bits::metric_space {

/// Vectors that no bound holds for, to a group.
constexpr int kRestGroup = 64;

/// What groups let a first stage know, on the host: MetricGroups without the
/// vectors.
struct HostGroupBounds {
    Metric metric = Metric::L2;           ///< as there
    int d = 0;                            ///< components
    idx_t numIds = 0;                     ///< ids are below it
    GroupBounds kind = GroupBounds::None; ///< what the bounds are of
    uint32_t numGroups = 0;               ///< bounded ones first
    uint32_t numBounded = 0;              ///< of them
    uint32_t numReferences = 0;           ///< centers or pivots
    std::vector<float> references;        ///< [numReferences, d]
    std::vector<int32_t> referenceIds; ///< [numReferences] of centers, or empty
    /// Centers: [numBounded]; pivots: [numReferences, numBounded].
    std::vector<double> leasts; ///< not above the distance
    std::vector<double> mosts;  ///< not below the distance
};

/// Those of groups on the device. Waits for the stream.
HostGroupBounds readGroupBounds(
        const MetricGroups& groups,
        cudaStream_t stream);

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
    /// Moved alone: a copy would share the memory.
    GroupsMemory(GroupsMemory&&) = default;
    /// Likewise.
    GroupsMemory& operator=(GroupsMemory&&) = default;

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

    /// Bounds alone, for first stages (runFirstStage).
    GroupsMemory(
            const HostGroupBounds& bounds,
            const Allocate& allocate,
            cudaStream_t stream);

    /// Vectors that had number i have ids[i] from now on, ascending and below
    /// numIds. After an error some may have theirs and others not: the object
    /// is to be destroyed or assigned to, and used no more.
    void setIds(
            const std::vector<idx_t>& ids,
            idx_t numIds,
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
