// The search of shards, batch by batch.

#include "faiss_bits/many/ShardSet.h"

#include <algorithm>

#include "faiss_bits/many/ShardBatch.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Results of a batch that a device may hold at least.
constexpr size_t kLeastBatchBytes = size_t(64) << 20;

} // namespace

ShardSet::ShardSet(const DeviceList& list, const GpuIndexBitsManyConfig& config)
        : PartSet(list, config, "shard"),
          map(devices.size(), config.leastPiece) {}

std::vector<ShardPiece> ShardSet::plan(idx_t n) const {
    if (isFlat()) {
        return map.plan(n);
    }
    std::vector<idx_t> sizes;
    for (const auto& part : parts) {
        sizes.push_back(part->ntotal);
    }
    return dealOut(n, sizes, config.leastPiece, -1);
}

std::vector<std::shared_ptr<void>> ShardSet::uploadSegments(
        const ShardMap& of) const {
    if (of.isInOrder()) {
        return {};
    }
    std::vector<std::shared_ptr<void>> made(devices.size());
    for (int shard = 0; shard < devices.size(); ++shard) {
        const auto& list = of.segments(shard);
        if (list.empty()) {
            continue;
        }
        devices.onPart(shard, [&] {
            const size_t bytes = list.size() * sizeof(IdSegment);
            made[shard] = allocateOnDevice(bytes);
            const cudaStream_t stream = devices.context(shard).stream;
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    made[shard].get(),
                    list.data(),
                    bytes,
                    cudaMemcpyHostToDevice,
                    stream));
            waitFor(stream);
        });
    }
    return made;
}

idx_t ShardSet::mostOfBatch(int d, const ShardQueries& queries) const {
    // Bytes of a query on the device that has most of them.
    size_t perQuery = 0;
    size_t budget = SIZE_MAX;
    const std::vector<idx_t> wanted =
            widths(queries.n, queries.k, queries.mayCut && uncut == 0);
    for (int shard = 0; shard < devices.size(); ++shard) {
        const DevicePlace& place = devices[shard];
        const size_t there =
                place.resources->getTempMemoryAvailable(place.device) / 4;
        budget = std::min(budget, std::max(there, kLeastBatchBytes));
        perQuery = std::max(perQuery, size_t(wanted[shard]) * kResultBytes);
    }
    // A lead also gets slices of what the others found, and makes one.
    const size_t groups = devices.groups().size();
    if (groups > 1) {
        perQuery = 2 * perQuery + d * sizeof(float) +
                size_t(queries.k) * kResultBytes / groups;
    }
    return std::max<idx_t>(1, budget / std::max<size_t>(perQuery, 1));
}

void ShardSet::search(
        const GpuContext& home,
        int d,
        bool largest,
        const ShardQueries& queries) const {
    for (idx_t first = 0; first < queries.n;) {
        // Anew for each: whether lists are cut may change from one to the next.
        const idx_t rest = queries.n - first;
        const idx_t most = mostOfBatch(d, queries);
        const idx_t batches = (rest + most - 1) / most;
        ShardQueries some = queries;
        some.n = (rest + batches - 1) / batches;
        some.x += first * d;
        some.distances += first * queries.k;
        some.labels += first * queries.k;
        searchBatch(home, d, largest, some);
        first += some.n;
    }
}

std::vector<idx_t> ShardSet::widths(idx_t n, idx_t k, bool mayCut) const {
    std::vector<idx_t> full;
    std::vector<idx_t> cut;
    idx_t total = 0;
    for (int shard = 0; shard < devices.size(); ++shard) {
        total += sizeOf(shard);
    }
    double all = 0;
    double fewer = 0;
    for (int shard = 0; shard < devices.size(); ++shard) {
        full.push_back(std::min(k, sizeOf(shard)));
        cut.push_back(firstWidth(k, sizeOf(shard), std::max<idx_t>(total, 1)));
        all += double(full.back());
        fewer += double(cut.back());
    }
    // Else the wait costs more than it saves. Lists cost less a result.
    const double leastResults = isFlat() ? 1 << 16 : 1 << 18;
    const bool pays =
            double(n) * double(k) >= leastResults && fewer <= 0.75 * all;
    return mayCut && pays ? cut : full;
}

void ShardSet::searchBatch(
        const GpuContext& home,
        int d,
        bool largest,
        const ShardQueries& queries) const {
    const bool mayCut = queries.mayCut && uncut == 0;
    const std::vector<idx_t> wanted = widths(queries.n, queries.k, mayCut);
    const bool hasLimits = isFlat() && mayCut &&
            sample.isReadyFor(*this, queries.n, queries.k);
    const ShardSample* const limits = hasLimits ? &sample : nullptr;
    uncut -= uncut > 0;
    std::vector<idx_t> again;
    {
        ShardBatch batch(*this, home, d, largest, queries, wanted, limits);
        try {
            batch.run();
            again = batch.incompleteRows();
        } catch (...) {
            devices.waitForAll(); // before temporary memory is let go of
            throw;
        }
    }
    if (again.empty()) {
        pause = mayCut ? kLeastPause : pause;
        return;
    }
    // Where vectors are not in random order, nor are the shards of the best.
    constexpr int kMostPause = 1023;
    if (idx_t(again.size()) > queries.n / 16) {
        uncut = pause;
        pause = std::min(2 * pause + 1, kMostPause);
    } else {
        pause = kLeastPause;
    }
    searchAgain(home, d, largest, queries, again);
}

void ShardSet::searchAgain(
        const GpuContext& home,
        int d,
        bool largest,
        const ShardQueries& queries,
        const std::vector<idx_t>& rows) const {
    ShardQueries whole = queries;
    whole.mayCut = false;
    // Few of them are copied one by one.
    constexpr size_t kFew = 64;
    if (rows.size() > kFew) {
        search(home, d, largest, whole); // longer lists: maybe several batches
        return;
    }
    MemoryStack memory;
    ShardQueries some = whole;
    some.n = idx_t(rows.size());
    const size_t queryBytes = size_t(d) * sizeof(float);
    const size_t k = size_t(queries.k);
    auto* x = static_cast<float*>(memory.take(home, some.n * queryBytes));
    const Results out(
            memory.take(home, some.n * k * kResultBytes), some.n, queries.k);
    const auto copyRow = [&](void* to, const void* from, size_t bytes) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to, from, bytes, cudaMemcpyDeviceToDevice, home.stream));
    };
    for (size_t i = 0; i < rows.size(); ++i) {
        copyRow(x + i * d, queries.x + rows[i] * d, queryBytes);
    }
    some.x = x;
    some.distances = out.distances;
    some.labels = out.labels;
    searchBatch(home, d, largest, some);
    for (size_t i = 0; i < rows.size(); ++i) {
        copyRow(queries.distances + rows[i] * k,
                out.distances + i * k,
                k * sizeof(float));
        copyRow(queries.labels + rows[i] * k,
                out.labels + i * k,
                k * sizeof(idx_t));
    }
}

} // namespace faiss_bits::gpu::detail
