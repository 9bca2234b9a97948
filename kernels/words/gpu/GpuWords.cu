#include "kernels/words/gpu/GpuWords.h"

#include <algorithm>
#include <bit>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "kernels/words/gpu/DeviceGroups.h"
#include "kernels/words/gpu/RangeRows.cuh"
#include "kernels/words/gpu/WordLaunch.h"

namespace faiss_bits::words {

namespace {

/// Warps that walk the trie, at least: enough to hide what each waits for.
constexpr uint32_t kWalkTasks = 32768;
/// Ids whose bits a block of sortRowsKernel holds: 64 KiB.
constexpr uint32_t kMostWindow = 1 << 19;

} // namespace

struct GpuWords::State {
    uint32_t numLetters = 0, numNodes = 0, numWords = 0, longest = 0;
    DeviceMemory<TrieNode> nodes;
    DeviceMemory<uint32_t> parents, ids;
    const Dictionary* dictionary = nullptr; // for what is copied later

    DeviceGroups byLength, byPlace, centers, buckets, pivots;
    DeviceMemory<uint32_t> radii;
    DeviceMemory<uint16_t> toPivots;
    uint32_t numCenters = 0, numPivots = 0;

    // Queries.
    DeviceMemory<uint32_t> queryLetters;
    DeviceMemory<idx_t> queryBegins;
    DeviceMemory<uint64_t> keys, keysSorted;
    DeviceMemory<uint32_t> numbers, order;
    DeviceMemory<unsigned char> scratch;

    // Results.
    DeviceMemory<Count> counts; // of the queries, then the total
    DeviceMemory<uint64_t> found;
    DeviceMemory<RowEntry> rows;
    DeviceMemory<idx_t> limits, outIds;
    DeviceMemory<int32_t> outDistances;

    FoundParams foundParams(const DeviceQueries& queries, uint32_t most) {
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

    /// Puts queries that begin alike together.
    void sortQueries(const DeviceQueries& queries, cudaStream_t stream) {
        const auto n = size_t(queries.count);
        keys.reserve(n);
        keysSorted.reserve(n);
        numbers.reserve(n);
        order.reserve(n);
        const auto bits = uint32_t(std::bit_width(numLetters + 1u));
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

    void walk(
            const DeviceQueries& queries,
            uint32_t most,
            cudaStream_t stream) {
        TrieParams p;
        static_cast<FoundParams&>(p) = foundParams(queries, most);
        p.nodes = nodes.data();
        p.parents = parents.data();
        p.numNodes = numNodes;
        p.order = order.data();
        const auto groups = uint32_t((queries.count + 31) / 32);
        const uint32_t parts = std::clamp<uint32_t>(
                (kWalkTasks + groups * kWalkWarps - 1) / (groups * kWalkWarps),
                1,
                std::max(1u, numNodes / (64 * kWalkWarps)));
        p.parts = parts * kWalkWarps;
        const auto launch = [&](idx_t first, idx_t end, bool isLong) {
            if (first == end) {
                return;
            }
            p.first = uint32_t(first);
            p.end = uint32_t(end);
            launchTrieWalk(p, isLong, stream);
        };
        launch(0, queries.below32, false);
        launch(queries.below32, queries.count, true);
    }

    void scan(
            const DeviceQueries& queries,
            uint32_t most,
            Method method,
            cudaStream_t stream) {
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
        launchQueryScan(p, method, queries.longest > 32, queries.count, stream);
    }

    /// Places of all results from their numbers: limits, of which the last is
    /// the total.
    idx_t makeLimits(const DeviceQueries& queries, cudaStream_t stream) {
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

    void makeRows(
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
        const uint32_t window =
                std::min(kMostWindow, (numWords + 255) / 256 * 256);
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
};

Method GpuWords::choose(Method method, uint32_t maxDistance) {
    return method != Method::Auto        ? method
            : maxDistance <= kMostErrors ? Method::Trie
                                         : Method::BruteForce;
}

std::string GpuWords::refusal(
        const Dictionary& dictionary,
        Method method,
        uint32_t longestQuery,
        uint32_t maxDistance) {
    if (longestQuery > kLongestQuery) {
        return formatMessage(
                "queries: one has %u letters, the GPU takes %u",
                longestQuery,
                kLongestQuery);
    }
    if (dictionary.longest > kLongestWord) {
        return formatMessage(
                "words: one has %u letters, the GPU takes %u",
                dictionary.longest,
                kLongestWord);
    }
    method = choose(method, maxDistance);
    if (method == Method::Trie && maxDistance > kMostErrors) {
        return formatMessage(
                "max_distance = %u: the method 'trie' takes up to %u on the "
                "GPU",
                maxDistance,
                kMostErrors);
    }
    constexpr size_t kMostLetters = kTableBytes / sizeof(uint64_t);
    if (method != Method::Trie && dictionary.alphabet.size() > kMostLetters) {
        return formatMessage(
                "words: %zu different letters, the method '%s' takes %zu on "
                "the "
                "GPU",
                dictionary.alphabet.size(),
                nameOf(method),
                kMostLetters);
    }
    return "";
}

GpuWords::GpuWords(const Dictionary& dictionary)
        : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.dictionary = &dictionary;
    s.numLetters = uint32_t(dictionary.alphabet.size());
    s.numNodes = dictionary.numNodes();
    s.numWords = uint32_t(dictionary.size());
    s.longest = dictionary.longest;
    s.nodes.copy(dictionary.nodes);
    s.ids.copy(dictionary.ids);
    std::vector<uint32_t> parents(s.numNodes), path(1);
    for (uint32_t i = 1; i < s.numNodes; ++i) {
        const uint32_t depth = dictionary.nodes[i].depth();
        path.resize(depth);
        parents[i] = path.back();
        path.push_back(i);
    }
    s.parents.copy(parents);
}

GpuWords::~GpuWords() = default;

bool GpuWords::hasClusters() const {
    return state_->centers.isThere;
}

bool GpuWords::hasPivots() const {
    return state_->pivots.isThere;
}

void GpuWords::setClusters(const ListOfClusters& clusters) {
    State& s = *state_;
    s.numCenters = clusters.count();
    s.radii.copy(clusters.radii);
    s.buckets.copy(clusters.buckets);
    s.centers.copy(clusters.centers);
}

void GpuWords::setPivots(const Pivots& pivots) {
    State& s = *state_;
    WordGroups byPlace;
    std::vector<uint32_t> places(WordGroups::kSize);
    for (uint32_t first = 0; first < s.numWords; first += WordGroups::kSize) {
        const uint32_t n = std::min(WordGroups::kSize, s.numWords - first);
        for (uint32_t i = 0; i < n; ++i) {
            places[i] = first + i;
        }
        byPlace.add(*s.dictionary, places.data(), n);
    }
    s.byPlace.copy(byPlace);
    s.numPivots = uint32_t(pivots.count());
    s.toPivots.copy(pivots.distances);
    s.pivots.copy(pivots.pivots);
}

DeviceQueries GpuWords::upload(
        const LetterWords& queries,
        idx_t first,
        idx_t count,
        cudaStream_t stream) {
    State& s = *state_;
    const idx_t begin = queries.begins[size_t(first)];
    const idx_t end = queries.begins[size_t(first + count)];
    std::vector<idx_t> begins;
    DeviceQueries out;
    out.count = count;
    for (idx_t i = 0; i <= count; ++i) {
        begins.push_back(queries.begins[size_t(first + i)] - begin);
    }
    for (idx_t i = first; i < first + count; ++i) {
        out.longest = std::max(out.longest, queries.length(i));
        out.below32 += queries.length(i) < 32;
    }
    s.queryLetters.reserve(size_t(std::max<idx_t>(1, end - begin)));
    s.queryBegins.reserve(begins.size());
    const auto copy = [&](void* to, const void* from, size_t bytes) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to, from, bytes, cudaMemcpyHostToDevice, stream));
    };
    copy(s.queryLetters.data(),
         queries.letters.data() + begin,
         size_t(end - begin) * sizeof(uint32_t));
    copy(s.queryBegins.data(), begins.data(), begins.size() * sizeof(idx_t));
    // The copies are from memory that goes.
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    out.letters = s.queryLetters.data();
    out.begins = s.queryBegins.data();
    return out;
}

DeviceRange GpuWords::range(
        const DeviceQueries& queries,
        uint32_t maxDistance,
        Method method,
        idx_t mostResults,
        cudaStream_t stream) {
    State& s = *state_;
    const std::string why =
            refusal(*s.dictionary, method, queries.longest, maxDistance);
    BITS_THROW_IF_NOT_FMT(why.empty(), "%s", why.c_str());
    BITS_THROW_IF_NOT_FMT(
            0 <= queries.count && queries.count <= kMostQueries,
            "queries: their number %lld is outside 0 .. %lld",
            (long long)queries.count,
            (long long)kMostQueries);
    method = choose(method, maxDistance);
    BITS_THROW_IF_NOT_FMT(
            (method != Method::ListOfClusters || hasClusters()) &&
                    (method != Method::Sss || hasPivots()),
            "the method '%s' is not on the device",
            nameOf(method));
    const auto n = size_t(queries.count);
    // No distance is above 4095, which is all that a result can say.
    const uint32_t most =
            std::min(maxDistance, std::max(kLongestWord, kLongestQuery));
    s.limits.reserve(n + 1);
    s.counts.reserve(n + 1);
    DeviceRange out;
    out.limits = s.limits.data();
    if (n == 0 || s.numWords == 0) {
        BITS_CUDA_CHECK(cudaMemsetAsync(
                s.limits.data(), 0, (n + 1) * sizeof(idx_t), stream));
        return out;
    }
    if (method == Method::BruteForce && !s.byLength.isThere) {
        s.byLength.copy(WordGroups::byLength(*s.dictionary));
    }
    if (method == Method::Trie) {
        s.sortQueries(queries, stream);
    }
    s.found.reserve(std::max(n * 64, size_t(1) << 16));
    while (true) {
        BITS_CUDA_CHECK(cudaMemsetAsync(
                s.counts.data(), 0, (n + 1) * sizeof(Count), stream));
        if (method == Method::Trie) {
            s.walk(queries, most, stream);
        } else {
            s.scan(queries, most, method, stream);
        }
        out.total = s.makeLimits(queries, stream);
        if (out.total > mostResults) {
            throw TooManyResults(formatMessage(
                    "%lld results are more than max_results = %lld",
                    (long long)out.total,
                    (long long)mostResults));
        }
        if (size_t(out.total) <= s.found.capacity()) {
            break;
        }
        // Once more, with room for all.
        s.found.reserve(size_t(out.total) + size_t(out.total) / 8);
    }
    const size_t room = size_t(std::max<idx_t>(1, out.total));
    s.rows.reserve(room);
    s.outIds.reserve(room);
    s.outDistances.reserve(room);
    s.makeRows(queries, out.total, stream);
    out.distances = s.outDistances.data();
    out.ids = s.outIds.data();
    return out;
}

} // namespace faiss_bits::words
