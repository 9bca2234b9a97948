#include "kernels/words/gpu/RangeRows.cuh"

#include <algorithm>
#include <bit>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "kernels/words/gpu/GpuWordsState.h"
#include "kernels/words/gpu/WordLaunch.h"

/// The steps of a search by GpuWords.
namespace faiss_bits::words {

namespace {

/// Warps that walk the trie, at least: enough to hide what each waits for.
constexpr uint32_t kWalkTasks = 32768;
/// Ids whose bits a block of sortRowsKernel holds: 64 KiB.
constexpr uint32_t kMostWindow = 1 << 19;
/// Blocks that scan words for few queries, at least.
constexpr uint32_t kScanBlocks = 1056;
/// Memory for tables of long queries, unless one query needs more.
constexpr size_t kTablesBytes = size_t(256) << 20;

/// Blocks for every query. Those of a List of Clusters need all its centers.
uint32_t partsOf(Method method, idx_t queries) {
    return method == Method::ListOfClusters
            ? 1
            : uint32_t(std::max<idx_t>(1, kScanBlocks / queries));
}

} // namespace

FoundParams GpuWords::State::foundParams(
        const DeviceQueries& queries,
        uint32_t most) {
    FoundParams p;
    p.letters = queries.letters;
    p.begins = queries.begins;
    p.numLetters = numLetters;
    p.most = most;
    p.found = found.data();
    p.capacity = found.capacity();
    p.total = counts.data() + queries.count;
    p.counts = counts.data();
    return p;
}

void GpuWords::State::sortQueries(
        const DeviceQueries& queries,
        cudaStream_t stream) {
    const auto n = size_t(queries.count);
    keys.reserve(n);
    keysSorted.reserve(n);
    numbers.reserve(n);
    order.reserve(n);
    const auto bits = uint32_t(std::bit_width(numLetters + 2u));
    queryKeysKernel<<<unsigned((n + 127) / 128), 128, 0, stream>>>(
            queries.letters,
            queries.begins,
            uint32_t(n),
            bits,
            keys.data(),
            numbers.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    const int keyBits = int(63 / bits * bits + 1);
    size_t bytes = 0;
    const auto sort = [&](void* memory) {
        BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
                memory,
                bytes,
                keys.data(),
                keysSorted.data(),
                numbers.data(),
                order.data(),
                int(n),
                0,
                keyBits,
                stream));
    };
    sort(nullptr);
    scratch.reserve(bytes);
    sort(scratch.data());
}

void GpuWords::State::walk(
        const DeviceQueries& queries,
        uint32_t most,
        cudaStream_t stream) {
    TrieParams p;
    static_cast<FoundParams&>(p) = foundParams(queries, most);
    p.nodes = nodes.data();
    p.parents = parents.data();
    p.numNodes = numNodes;
    p.order = order.data();
    const auto groups = uint32_t((queries.below64 + 31) / 32);
    const uint32_t parts = std::clamp<uint32_t>(
            (kWalkTasks + groups * kWalkWarps - 1) / (groups * kWalkWarps),
            1,
            std::max(1u, numNodes / (64 * kWalkWarps)));
    p.parts = parts * kWalkWarps;
    const auto launch = [&](idx_t first, idx_t end, bool isWide) {
        if (first == end) {
            return;
        }
        p.first = uint32_t(first);
        p.end = uint32_t(end);
        launchTrieWalk(p, isWide, stream);
    };
    launch(0, queries.below32, false);
    launch(queries.below32, queries.below64, true);
}

ScanParams GpuWords::State::scanParams(
        const DeviceQueries& queries,
        uint32_t most,
        Method method) {
    ScanParams p;
    static_cast<FoundParams&>(p) = foundParams(queries, most);
    p.words = method == Method::Sss ? byPlace.params() : byLength.params();
    p.centers = centers.params();
    p.buckets = buckets.params();
    p.radii = radii.data();
    p.numCenters = numCenters;
    p.pivots = pivots.params();
    p.toPivots = toPivots.data();
    p.numPivots = numPivots;
    p.numWords = numWords;
    return p;
}

void GpuWords::State::scan(
        const DeviceQueries& queries,
        uint32_t most,
        Method method,
        cudaStream_t stream) {
    launchQueryScan(
            scanParams(queries, most, method),
            method,
            queries.longestBelow64 > 32,
            queries.count,
            partsOf(method, queries.count),
            stream);
}

void GpuWords::State::scanLong(
        const DeviceQueries& queries,
        uint32_t most,
        Method method,
        cudaStream_t stream) {
    LongScanParams p;
    static_cast<ScanParams&>(p) = scanParams(queries, most, method);
    const std::vector<uint32_t>& blocks = queries.longBlocks;
    for (size_t first = 0; first < blocks.size();) {
        const uint32_t kind = longKindOf(blocks[first]);
        size_t end = first;
        while (end < blocks.size() && blocks[end] <= kind) {
            ++end;
        }
        p.tables = nullptr;
        p.blocks = blocks[end - 1];
        const size_t size = size_t(numLetters) * p.blocks;
        if (size * sizeof(uint64_t) > kLongTableBytes) {
            const size_t fit = kTablesBytes / sizeof(uint64_t) / size;
            end = std::min(end, first + std::max<size_t>(1, fit));
            p.blocks = blocks[end - 1];
            tables.reserve((end - first) * size);
            p.tables = tables.data();
        }
        p.queries = queries.longOnes + first;
        const auto count = idx_t(end - first);
        launchLongScan(p, method, kind, count, partsOf(method, count), stream);
        first = end;
    }
}

idx_t GpuWords::State::makeLimits(
        const DeviceQueries& queries,
        cudaStream_t stream) {
    const auto n = size_t(queries.count);
    size_t bytes = 0;
    const auto scanCounts = [&](void* memory) {
        // The total, behind the counts, is not part of a sum before it.
        BITS_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(
                memory,
                bytes,
                counts.data(),
                reinterpret_cast<Count*>(limits.data()),
                int(n + 1),
                stream));
    };
    scanCounts(nullptr);
    scratch.reserve(bytes);
    scanCounts(scratch.data());
    idx_t total = 0;
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            &total,
            limits.data() + n,
            sizeof(total),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return total;
}

void GpuWords::State::makeRows(
        const DeviceQueries& queries,
        idx_t total,
        cudaStream_t stream) {
    if (total == 0) {
        return;
    }
    const auto blocks =
            unsigned(std::min<idx_t>((total + 255) / 256, 132 * 32));
    gatherRowsKernel<<<blocks, 256, 0, stream>>>(
            found.data(),
            total,
            ids.data(),
            limits.data(),
            counts.data(),
            rows.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    const uint32_t window = std::min(kMostWindow, (numWords + 255) / 256 * 256);
    const size_t bytes = window / 8 + (window / 256 + 1) * 4;
    allowSharedBytes(sortRowsKernel, bytes);
    sortRowsKernel<<<unsigned(queries.count), kRowThreads, bytes, stream>>>(
            rows.data(),
            limits.data(),
            numWords,
            window,
            outDistances.data(),
            outIds.data());
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::words
