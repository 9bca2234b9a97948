#include "kernels/metric_space/GroupsMemory.h"

#include <algorithm>

#include "kernels/canonical/TrueDistance.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;

__global__ void gatherRowsKernel(
        const float* vectors,
        const int32_t* ids,
        idx_t values,
        int d,
        float* out) {
    const idx_t step = idx_t(gridDim.x) * kThreads;
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < values;
         i += step) {
        out[i] = vectors[idx_t(ids[i / d]) * d + i % d];
    }
}

template <class T>
std::vector<T> download(const T* from, size_t count, cudaStream_t stream) {
    std::vector<T> values(count);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            values.data(),
            from,
            count * sizeof(T),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return values;
}

/// Bounds of each kind.
size_t boundsOf(const MetricGroups& g) {
    return g.kind == GroupBounds::Pivots
            ? size_t(g.numReferences) * g.numBounded
            : g.numBounded;
}

/// numbers[i] = ids[numbers[i]], in memory of ours on the device.
void rename(
        const int32_t* numbers,
        size_t count,
        const std::vector<idx_t>& ids,
        cudaStream_t stream) {
    std::vector<int32_t> renamed = download(numbers, count, stream);
    for (int32_t& number : renamed) {
        number = int32_t(ids[number]);
    }
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            const_cast<int32_t*>(numbers),
            renamed.data(),
            count * sizeof(int32_t),
            cudaMemcpyHostToDevice,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
}

std::vector<int32_t> narrow(const std::vector<idx_t>& ids) {
    return {ids.begin(), ids.end()};
}

} // namespace

void runGatherRows(
        const float* vectors,
        const int32_t* ids,
        idx_t count,
        int d,
        float* out,
        cudaStream_t stream) {
    const idx_t values = count * d;
    if (values == 0) {
        return;
    }
    const idx_t blocks =
            std::min<idx_t>((values + kThreads - 1) / kThreads, 1 << 16);
    gatherRowsKernel<<<unsigned(blocks), kThreads, 0, stream>>>(
            vectors, ids, values, d, out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T>
T* GroupsMemory::take_(const Allocate& allocate, size_t count) {
    memory_.push_back(allocate(std::max<size_t>(count, 1) * sizeof(T)));
    return static_cast<T*>(memory_.back().get());
}

template <class T>
T* GroupsMemory::upload_(
        const Allocate& allocate,
        const std::vector<T>& values,
        cudaStream_t stream) {
    T* data = take_<T>(allocate, values.size());
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            data,
            values.data(),
            values.size() * sizeof(T),
            cudaMemcpyHostToDevice,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return data;
}

float* GroupsMemory::gather_(
        const MetricVectors& vectors,
        const int32_t* ids,
        idx_t count,
        const Allocate& allocate,
        cudaStream_t stream) {
    float* rows = take_<float>(allocate, size_t(count) * vectors.d);
    runGatherRows(vectors.data, ids, count, vectors.d, rows, stream);
    return rows;
}

void GroupsMemory::setPlaces_(
        const MetricVectors& vectors,
        const std::vector<idx_t>& bounded,
        const std::vector<idx_t>& rest,
        size_t numBounded,
        int size,
        const Allocate& allocate,
        cudaStream_t stream) {
    groups_.metric = vectors.metric;
    groups_.d = vectors.d;
    groups_.numIds = vectors.n;
    groups_.groupSize = uint32_t(size);
    groups_.numBounded = uint32_t(numBounded);
    std::vector<uint32_t> firsts;
    for (size_t g = 0; g < numBounded; ++g) {
        firsts.push_back(uint32_t(std::min(g * size_t(size), bounded.size())));
    }
    for (size_t i = 0; i < rest.size(); i += kRestGroup) {
        firsts.push_back(uint32_t(bounded.size() + i));
    }
    groups_.numGroups = uint32_t(firsts.size());
    std::vector<int32_t> ids = narrow(bounded);
    ids.insert(ids.end(), rest.begin(), rest.end());
    groups_.n = ids.size();
    firsts.push_back(uint32_t(ids.size()));
    groups_.firsts = upload_(allocate, firsts, stream);
    const int32_t* onDevice = upload_(allocate, ids, stream);
    groups_.ids = onDevice;
    groups_.vectors = gather_(vectors, onDevice, groups_.n, allocate, stream);
}

void GroupsMemory::setReferences_(
        const MetricVectors& vectors,
        const std::vector<idx_t>& ids,
        const Allocate& allocate,
        cudaStream_t stream) {
    groups_.numReferences = uint32_t(ids.size());
    const int32_t* onDevice = upload_(allocate, narrow(ids), stream);
    groups_.references =
            gather_(vectors, onDevice, ids.size(), allocate, stream);
    if (groups_.kind == GroupBounds::Centers) {
        groups_.referenceIds = onDevice;
    }
}

GroupsMemory::GroupsMemory(
        const MetricVectors& vectors,
        const ListOfClusters& list,
        const Allocate& allocate,
        cudaStream_t stream) {
    groups_.kind = GroupBounds::Centers;
    setPlaces_(
            vectors,
            list.members,
            list.rest,
            list.centers.size(),
            list.bucketSize,
            allocate,
            stream);
    setReferences_(vectors, list.centers, allocate, stream);
    std::vector<double> leasts;
    std::vector<double> mosts;
    for (const float radius : list.radii) {
        leasts.push_back(canonical::leastTrue(vectors.metric, radius));
        mosts.push_back(canonical::mostTrue(vectors.metric, radius));
    }
    groups_.leasts = upload_(allocate, leasts, stream);
    groups_.mosts = upload_(allocate, mosts, stream);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
}

GroupsMemory::GroupsMemory(
        const MetricVectors& vectors,
        const PivotTable& table,
        int groupSize,
        const Allocate& allocate,
        cudaStream_t stream) {
    groups_.kind = GroupBounds::Pivots;
    const size_t numBounded = (table.order.size() + groupSize - 1) / groupSize;
    setPlaces_(
            vectors,
            table.order,
            table.rest,
            numBounded,
            groupSize,
            allocate,
            stream);
    setReferences_(vectors, table.pivots, allocate, stream);
    const size_t bounds = table.pivots.size() * numBounded;
    double* leasts = take_<double>(allocate, bounds);
    double* mosts = take_<double>(allocate, bounds);
    groups_.leasts = leasts;
    groups_.mosts = mosts;
    const auto distances =
            allocate(std::max<size_t>(groups_.n, 1) * sizeof(float));
    for (size_t p = 0; p < table.pivots.size(); ++p) {
        float* out = static_cast<float*>(distances.get());
        runRowDistances(
                groups_,
                groups_.references + p * vectors.d,
                false,
                out,
                stream);
        runGroupBounds(groups_, out, uint32_t(p), leasts, mosts, stream);
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
}

GroupsMemory::GroupsMemory(
        const MetricVectors& vectors,
        const Allocate& allocate,
        cudaStream_t stream) {
    std::vector<idx_t> all(size_t(vectors.n));
    for (idx_t i = 0; i < vectors.n; ++i) {
        all[i] = i;
    }
    setPlaces_(vectors, all, {}, 0, 1, allocate, stream);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
}

HostGroupBounds readGroupBounds(const MetricGroups& g, cudaStream_t stream) {
    HostGroupBounds bounds;
    bounds.metric = g.metric;
    bounds.d = g.d;
    bounds.numIds = g.numIds;
    bounds.kind = g.kind;
    bounds.numGroups = g.numGroups;
    bounds.numBounded = g.numBounded;
    bounds.numReferences = g.numReferences;
    bounds.references =
            download(g.references, size_t(g.numReferences) * g.d, stream);
    if (g.referenceIds) {
        bounds.referenceIds = download(g.referenceIds, g.numReferences, stream);
    }
    bounds.leasts = download(g.leasts, boundsOf(g), stream);
    bounds.mosts = download(g.mosts, boundsOf(g), stream);
    return bounds;
}

GroupsMemory::GroupsMemory(
        const HostGroupBounds& bounds,
        const Allocate& allocate,
        cudaStream_t stream) {
    groups_.metric = bounds.metric;
    groups_.d = bounds.d;
    groups_.numIds = bounds.numIds;
    groups_.kind = bounds.kind;
    groups_.numGroups = bounds.numGroups;
    groups_.numBounded = bounds.numBounded;
    groups_.numReferences = bounds.numReferences;
    groups_.references = upload_(allocate, bounds.references, stream);
    if (bounds.kind == GroupBounds::Centers) {
        groups_.referenceIds = upload_(allocate, bounds.referenceIds, stream);
    }
    groups_.leasts = upload_(allocate, bounds.leasts, stream);
    groups_.mosts = upload_(allocate, bounds.mosts, stream);
}

void GroupsMemory::setIds(
        const std::vector<idx_t>& ids,
        idx_t numIds,
        cudaStream_t stream) {
    rename(groups_.ids, size_t(groups_.n), ids, stream);
    if (groups_.referenceIds) {
        rename(groups_.referenceIds, groups_.numReferences, ids, stream);
    }
    groups_.numIds = numIds;
}

void GroupsMemory::makeColumns(const Allocate& allocate, cudaStream_t stream) {
    if (groups_.vectorColumns || groups_.numIds == 0) {
        return;
    }
    MetricGroups& g = groups_;
    float* references = take_<float>(allocate, size_t(g.numReferences) * g.d);
    runTranspose(g.references, g.numReferences, g.d, references, stream);
    g.referenceColumns = references;
    if (g.kind == GroupBounds::Pivots) {
        float* distances =
                take_<float>(allocate, size_t(g.numReferences) * g.n);
        for (uint32_t p = 0; p < g.numReferences; ++p) {
            runRowDistances(
                    g,
                    g.references + size_t(p) * g.d,
                    true,
                    distances + size_t(p) * g.n,
                    stream);
        }
        g.pivotDistances = distances;
    }
    float* vectors = take_<float>(allocate, size_t(g.n) * g.d);
    runTranspose(g.vectors, g.n, g.d, vectors, stream);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    g.vectorColumns = vectors;
}

} // namespace faiss_bits::metric_space
