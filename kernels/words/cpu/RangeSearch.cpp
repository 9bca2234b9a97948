#include "kernels/words/cpu/RangeSearch.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "kernels/common/Error.h"
#include "kernels/words/cpu/QueryScan.h"
#include "kernels/words/cpu/TrieByLanes.h"

namespace faiss_bits::words::cpu {

Way wayOf(Method method, uint32_t queryLength, uint32_t maxDistance) {
    switch (method) {
        case Method::BruteForce:
            return Way::BruteForce;
        case Method::ListOfClusters:
            return Way::Clusters;
        case Method::Sss:
            return Way::Pivots;
        case Method::Auto:
        case Method::Trie:
            break;
    }
    if (maxDistance <= uint32_t(kMostErrors) && queryLength < 64) {
        return queryLength < 16    ? Way::Lanes16
                : queryLength < 32 ? Way::Lanes32
                                   : Way::Lanes64;
    }
    // Beyond some errors few words are left out, and what finds all distances
    // does so for 16 words at once.
    return method == Method::Auto && queryLength <= 64 ? Way::BruteForce
                                                       : Way::Blocks;
}

std::string planText(
        const WordOptions& options,
        uint32_t queryLength,
        uint32_t maxDistance) {
    const Way way = wayOf(options.method, queryLength, maxDistance);
    const WordKernels& kernels = wordKernels();
    std::string text;
    switch (way) {
        case Way::Lanes16:
        case Way::Lanes32:
        case Way::Lanes64: {
            const int lanes = way == Way::Lanes16 ? kernels.lanes16
                    : way == Way::Lanes32         ? kernels.lanes32
                                                  : kernels.lanes64;
            text = formatMessage(
                    "trie by automata, %d queries at a time", lanes);
            break;
        }
        case Way::Blocks:
            text = "trie by columns, query by query";
            break;
        case Way::BruteForce:
            text = "brute force, 16 words at a time";
            break;
        case Way::Clusters:
            text = "list of clusters";
            break;
        case Way::Pivots:
            text = "sss";
            break;
    }
    return text + formatMessage(", on the CPU, %d threads", options.workers());
}

namespace {

/// Where the results of a query are.
struct Found {
    int thread = 0;
    idx_t first = 0, count = 0;
};

/// What a thread needs; made when it first has work.
struct ThreadState {
    ThreadState(
            const Dictionary& dictionary,
            const LetterWords& queries,
            uint32_t most)
            : scan(dictionary, queries, most) {}

    QueryScan scan;
    std::optional<TrieByLanes<uint16_t>> lanes16;
    std::optional<TrieByLanes<uint32_t>> lanes32;
    std::optional<TrieByLanes<uint64_t>> lanes64;
    std::vector<size_t> starts; // of the hits of a lane
    std::vector<LaneHit> byLane;
};

class RangeSearch {
   public:
    RangeSearch(
            const WordIndex& index,
            const LetterWords& queries,
            uint32_t most,
            const WordOptions& options)
            : index_(index),
              dictionary_(index.dictionary()),
              queries_(queries),
              most_(most),
              options_(options),
              found_(size_t(queries.count())),
              states_(size_t(options.workers())) {}

    WordRange run() {
        std::vector<uint32_t> byWay[kWays];
        for (idx_t i = 0; i < queries_.count(); ++i) {
            const Way way = wayOf(options_.method, queries_.length(i), most_);
            byWay[int(way)].push_back(uint32_t(i));
        }
        for (int way = 0; way < kWays; ++way) {
            if (!byWay[way].empty()) {
                runWay(Way(way), byWay[way]);
            }
        }
        return collect();
    }

   private:
    void runWay(Way way, std::vector<uint32_t>& queries) {
        const WordKernels& kernels = wordKernels();
        switch (way) {
            case Way::Lanes16:
                return runLanes(
                        queries,
                        kernels.lanes16,
                        kernels.walk16,
                        &ThreadState::lanes16);
            case Way::Lanes32:
                return runLanes(
                        queries,
                        kernels.lanes32,
                        kernels.walk32,
                        &ThreadState::lanes32);
            case Way::Lanes64:
                return runLanes(
                        queries,
                        kernels.lanes64,
                        kernels.walk64,
                        &ThreadState::lanes64);
            case Way::Blocks: {
                const SubtreeLengths& lengths = index_.subtreeLengths();
                return runEach(queries, [&](ThreadState& state, uint32_t i) {
                    state.scan.walkTrie(i, lengths);
                });
            }
            case Way::BruteForce: {
                const WordGroups& groups = index_.groups();
                return runEach(queries, [&](ThreadState& state, uint32_t i) {
                    state.scan.scanAll(i, groups);
                });
            }
            case Way::Clusters: {
                const ListOfClusters& clusters = index_.clusters(options_);
                return runEach(queries, [&](ThreadState& state, uint32_t i) {
                    state.scan.scanClusters(i, clusters);
                });
            }
            case Way::Pivots: {
                const Pivots& pivots = index_.pivots(options_);
                return runEach(queries, [&](ThreadState& state, uint32_t i) {
                    state.scan.scanPivots(i, pivots);
                });
            }
        }
    }

    ThreadState& stateOf(int thread) {
        auto& state = states_[size_t(thread)];
        if (!state) {
            state = std::make_unique<ThreadState>(dictionary_, queries_, most_);
        }
        return *state;
    }

    void finish(ThreadState& state, int thread, uint32_t query) {
        const idx_t first = state.scan.part.finish();
        found_[query] = {
                thread, first, idx_t(state.scan.part.outIds.size()) - first};
    }

    // ---- the trie ----------------------------------------------------------

    /// Queries that begin alike walk the same nodes.
    void sortByLetters(std::vector<uint32_t>& queries) const {
        const int bits = std::bit_width(dictionary_.alphabet.size() + 1);
        const auto letters = uint32_t(64 / bits);
        std::vector<std::pair<uint64_t, uint32_t>> keys;
        keys.reserve(queries.size());
        for (const uint32_t query : queries) {
            uint64_t key = 0;
            for (uint32_t i = 0; i < letters; ++i) {
                key = key << bits |
                        (i < queries_.length(query)
                                 ? queries_.word(query)[i] + 1
                                 : 0);
            }
            keys.push_back({key, query});
        }
        std::sort(keys.begin(), keys.end());
        for (size_t i = 0; i < keys.size(); ++i) {
            queries[i] = keys[i].second;
        }
    }

    template <class T>
    void runLanes(
            std::vector<uint32_t>& queries,
            int lanes,
            void (*kernel)(TrieWalk<T>&),
            std::optional<TrieByLanes<T>> ThreadState::*member) {
        sortByLetters(queries);
        const auto groups = int64_t((queries.size() + lanes - 1) / lanes);
        forAll(options_, groups, [&](int64_t group, int thread) {
            ThreadState& state = stateOf(thread);
            auto& walker = state.*member;
            if (!walker) {
                walker.emplace(dictionary_, lanes, kernel);
            }
            const uint32_t* first = queries.data() + group * lanes;
            const size_t count = std::min<size_t>(
                    size_t(lanes), queries.size() - size_t(group * lanes));
            takeHits(
                    state,
                    thread,
                    first,
                    count,
                    walker->run(
                            queries_,
                            first,
                            count,
                            int(most_),
                            state.scan.nodes));
        });
    }

    /// Hits by node become those of query after query.
    void takeHits(
            ThreadState& state,
            int thread,
            const uint32_t* queries,
            size_t count,
            const std::vector<LaneHit>& hits) {
        state.starts.assign(count + 1, 0);
        for (const LaneHit& hit : hits) {
            ++state.starts[hit.lane + 1];
        }
        for (size_t lane = 0; lane < count; ++lane) {
            state.starts[lane + 1] += state.starts[lane];
        }
        state.byLane.resize(hits.size());
        for (const LaneHit& hit : hits) {
            state.byLane[state.starts[hit.lane]++] = hit;
        }
        size_t place = 0; // starts[lane] is now the end of a lane's
        for (size_t lane = 0; lane < count; ++lane) {
            for (; place < state.starts[lane]; ++place) {
                const LaneHit& hit = state.byLane[place];
                state.scan.addNode(hit.node, hit.distance);
            }
            finish(state, thread, queries[lane]);
        }
    }

    // ---- query by query
    // -------------------------------------------------------

    /// body(state, query) for each, which adds its hits.
    template <class Body>
    void runEach(const std::vector<uint32_t>& queries, const Body& body) {
        forAll(options_, int64_t(queries.size()), [&](int64_t i, int thread) {
            ThreadState& state = stateOf(thread);
            const uint32_t query = queries[size_t(i)];
            body(state, query);
            finish(state, thread, query);
        });
    }

    // ---- results -----------------------------------------------------------

    WordRange collect() {
        WordRange out;
        out.limits.reserve(found_.size() + 1);
        out.limits.push_back(0);
        for (const Found& found : found_) {
            out.limits.push_back(out.limits.back() + found.count);
        }
        out.ids.resize(size_t(out.limits.back()));
        out.distances.resize(size_t(out.limits.back()));
        constexpr int64_t kPart = 256;
        const auto n = int64_t(found_.size());
        forAll(options_, (n + kPart - 1) / kPart, [&](int64_t part, int) {
            const int64_t end = std::min(n, (part + 1) * kPart);
            for (int64_t i = part * kPart; i < end; ++i) {
                const Found& found = found_[size_t(i)];
                if (found.count == 0) {
                    continue;
                }
                const HitPart& from = states_[size_t(found.thread)]->scan.part;
                std::copy_n(
                        from.outIds.begin() + found.first,
                        found.count,
                        out.ids.begin() + out.limits[size_t(i)]);
                std::copy_n(
                        from.outDistances.begin() + found.first,
                        found.count,
                        out.distances.begin() + out.limits[size_t(i)]);
            }
        });
        if (options_.stats) {
            for (const auto& state : states_) {
                if (state) {
                    options_.stats->distances += state->scan.comparisons;
                    options_.stats->nodes += state->scan.nodes;
                }
            }
        }
        return out;
    }

    const WordIndex& index_;
    const Dictionary& dictionary_;
    const LetterWords& queries_;
    uint32_t most_;
    const WordOptions& options_;
    std::vector<Found> found_;
    std::vector<std::unique_ptr<ThreadState>> states_;
};

} // namespace

WordRange searchRange(
        const WordIndex& index,
        const LetterWords& queries,
        uint32_t maxDistance,
        const WordOptions& options) {
    BITS_THROW_IF_NOT_FMT(
            queries.count() < (idx_t(1) << 31),
            "queries: %lld are more than 2^31 - 1",
            (long long)queries.count());
    return RangeSearch(index, queries, maxDistance, options).run();
}

} // namespace faiss_bits::words::cpu
