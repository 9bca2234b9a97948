#include "kernels/words/gpu/GpuWords.h"

#include <algorithm>
#include <numeric>

#include "kernels/words/gpu/GpuWordsState.h"
#include "kernels/words/gpu/WordLaunch.h"

namespace faiss_bits::words {

Method GpuWords::choose(
        Method method,
        uint32_t queryLength,
        uint32_t maxDistance) {
    const bool fitsTrie =
            queryLength <= kLongestOfTrie && maxDistance <= kMostErrors;
    return method != Method::Auto ? method
            : fitsTrie            ? Method::Trie
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
    if (method == Method::Trie && longestQuery > kLongestOfTrie) {
        return formatMessage(
                "queries: one has %u letters, the method 'trie' takes %u on "
                "the GPU",
                longestQuery,
                kLongestOfTrie);
    }
    // Long queries need no table in shared memory.
    method =
            choose(method, std::min(longestQuery, kLongestOfTrie), maxDistance);
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
    std::vector<uint32_t> longOnes;
    for (idx_t i = 0; i < count; ++i) {
        const uint32_t length = queries.length(first + i);
        out.longest = std::max(out.longest, length);
        out.below32 += length < 32;
        if (length < kLongQuery) {
            ++out.below64;
            out.longestBelow64 = std::max(out.longestBelow64, length);
        } else {
            longOnes.push_back(uint32_t(i));
        }
    }
    const auto blocksOf = [&](uint32_t query) {
        return (queries.length(first + query) + 63) / 64;
    };
    std::stable_sort(
            longOnes.begin(), longOnes.end(), [&](uint32_t a, uint32_t b) {
                return blocksOf(a) < blocksOf(b);
            });
    for (const uint32_t query : longOnes) {
        out.longBlocks.push_back(blocksOf(query));
    }
    s.queryLetters.reserve(size_t(std::max<idx_t>(1, end - begin)));
    s.queryBegins.reserve(begins.size());
    const auto copy = [&](void* to, const void* from, size_t bytes) {
        if (bytes > 0) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    to, from, bytes, cudaMemcpyHostToDevice, stream));
        }
    };
    copy(s.queryLetters.data(),
         queries.letters.data() + begin,
         size_t(end - begin) * sizeof(uint32_t));
    copy(s.queryBegins.data(), begins.data(), begins.size() * sizeof(idx_t));
    s.longOnes.reserve(longOnes.size());
    copy(s.longOnes.data(),
         longOnes.data(),
         longOnes.size() * sizeof(uint32_t));
    // The copies are from memory that goes.
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    out.letters = s.queryLetters.data();
    out.begins = s.queryBegins.data();
    out.longOnes = s.longOnes.data();
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
            "queries: their number %lld is outside 0..%lld",
            (long long)queries.count,
            (long long)kMostQueries);
    const Method shortMethod = choose(
            method, std::min(queries.longest, kLongestOfTrie), maxDistance);
    const Method longMethod = choose(method, kLongQuery, maxDistance);
    const bool hasLong = queries.below64 < queries.count;
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
    const bool needsAll = shortMethod == Method::BruteForce ||
            (hasLong && longMethod == Method::BruteForce);
    if (needsAll && !s.byLength.isThere) {
        s.byLength.copy(WordGroups::byLength(*s.dictionary));
    }
    if (shortMethod == Method::Trie && queries.below64 > 0) {
        s.sortQueries(queries, stream);
    }
    s.found.reserve(std::max(n * 64, size_t(1) << 16));
    while (true) {
        BITS_CUDA_CHECK(cudaMemsetAsync(
                s.counts.data(), 0, (n + 1) * sizeof(Count), stream));
        if (queries.below64 > 0) {
            if (shortMethod == Method::Trie) {
                s.walk(queries, most, stream);
            } else {
                s.scan(queries, most, shortMethod, stream);
            }
        }
        if (hasLong) {
            s.scanLong(queries, most, longMethod, stream);
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
