#include "kernels/ivf/IvfKnn.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/IvfDirect.h"
#include "kernels/ivf/IvfScratch.h"
#include "kernels/ivf/IvfTimes.h"

namespace faiss_bits {

namespace {

/// Queries that probe a list, on average, from which on they meet its vectors
/// in tiles: a tile of 64 queries takes as long however few they are.
constexpr idx_t kTilePairs = 16;
/// Likewise by estimates, which need few operations of float64.
constexpr idx_t kEstimatePairs = 1;
/// Tables are taken where all pairs or estimates are expected to take so many
/// times as long: what is expected of tables is within that on average.
constexpr double kTablesMargin = 1.08;
/// Likewise where a list is one tile of 256 vectors: 4,096 queries of 32 of 512
/// lists took 0.35 of what is expected of such tiles (24 parts of 12, H200).
constexpr double kWideTilesMargin = 2;
/// Of a matrix, so that 32 bits count its tiles.
constexpr idx_t kMostElements = idx_t(1) << 32;
constexpr idx_t kMostPairs = INT_MAX;
/// Vectors of near lists, for each that is wanted: their k-th is a limit that
/// few others pass.
constexpr idx_t kNearVectors = 4;
/// Likewise, where four of them have one bound, the least of theirs: a quarter
/// is written and selected from, and with three fours for each that is wanted
/// the limit is the 1.16 k-th at most, on average, of vectors in random order.
constexpr idx_t kNearVectorsOfFours = 12;
/// Vectors of near lists for what a search may find with their limit, so that
/// the one takes about as long as the other.
constexpr double kNearSquare = 3;
constexpr double kNearSquareOfFours = 4.5;

/// Candidates beyond k, whose lower bounds may come before the k-th distance:
/// some, and a part of k.
constexpr int kMoreCandidates = 16;
constexpr int kMoreCandidatesPart = 2;

idx_t roundUp(idx_t value, idx_t step) {
    return (value + step - 1) / step * step;
}

/// For so many queries at a time, or some fewer.
void setRows(IvfKnnPlan& plan, const IvfKnnProblem& p, idx_t most) {
    const idx_t turns = (p.numQueries + most - 1) / most;
    plan.rowsAtATime = (p.numQueries + turns - 1) / turns;
    const idx_t last = p.numQueries - (turns - 1) * plan.rowsAtATime;
    const bool isSame = last == plan.rowsAtATime;
    plan.selection = planSelection(ivfSelection(p, plan, plan.rowsAtATime));
    plan.lastSelection = isSame ? plan.selection
                                : planSelection(ivfSelection(p, plan, last));
    if (plan.room > 0) {
        plan.limits = planSelection(ivfLimits(p, plan, plan.rowsAtATime));
        plan.lastLimits =
                isSame ? plan.limits : planSelection(ivfLimits(p, plan, last));
    }
    if (plan.byEstimates()) {
        plan.choice = planSelection(ivfChoice(p, plan, plan.rowsAtATime));
        plan.lastChoice =
                isSame ? plan.choice : planSelection(ivfChoice(p, plan, last));
        plan.scoresByRows = scoresIvfByRows(plan, p);
    }
    WorkspaceSlices slices;
    const IvfAgainScratch again(p, plan, slices);
    WorkspaceSlices ofSearch;
    IvfScratch(p, plan, ofSearch);
    size_t shared = ofSearch.used();
    if (plan.byEstimates()) {
        // One query that is searched again has room in any case.
        WorkspaceSlices ofOne;
        IvfSomeRows(p, 1, ofOne);
        shared = std::max(
                shared,
                ofOne.used() + planIvfKnn(ivfProblemOfSome(p, 1), 0).bytes);
    }
    plan.bytes = slices.used() + shared;
}

/// A step of a wide tile takes 3.5 times as long as one of a narrow tile
/// (kernels/knn/all_pairs/AllPairsLaunch.h).
bool takesWideTiles(const IvfKnnProblem& p, idx_t rows) {
    const double lists = double(std::min(p.lists.numLists, rows * p.nprobe));
    const double pairs = double(rows) * p.nprobe / lists;
    const double vectors = double(p.mostVectors) / p.nprobe;
    const auto turns = [&](int width) {
        const double tiles = lists * std::ceil(pairs / kIvfTileQueries) *
                std::ceil(vectors / width);
        return std::ceil(tiles / p.device.multiprocessors);
    };
    return 7 * turns(kIvfWideTile) <= 2 * turns(kIvfNarrowTile);
}

/// All distances are kept.
void keepAll(IvfKnnPlan& plan, const IvfKnnProblem& p) {
    plan.nearProbes = p.nprobe;
    plan.stride =
            std::max<idx_t>(roundUp(p.mostVectors, kIvfRowStep), kIvfRowStep);
}

int candidatesOf(const IvfKnnProblem& p) {
    return int(std::min<int64_t>(
            int64_t(p.k) + kMoreCandidates + p.k / kMoreCandidatesPart,
            INT_MAX - 1));
}

/// Of a matrix of bounds of so many lists, and of so many vectors of each.
idx_t estimatesStride(
        const IvfKnnProblem& p,
        idx_t lists,
        idx_t mostOfList = INT_MAX) {
    const idx_t vectors = std::min(
            lists * std::min(ivfLongestList(p), mostOfList), p.mostVectors);
    return roundUp(vectors + lists * (kIvfColumnStep - 1), kIvfRowStep);
}

/// Lower bounds of all lists; false if there is little to leave out.
bool estimateAll(IvfKnnPlan& plan, const IvfKnnProblem& p) {
    plan.nearProbes = p.nprobe;
    plan.stride = estimatesStride(p, p.nprobe);
    plan.candidates = candidatesOf(p);
    return 2.0 * plan.candidates < double(p.mostVectors) &&
            plan.stride < INT_MAX;
}

/// The part of the lists that has columns.
double sampledShare(const IvfKnnProblem& p, idx_t sampleVectors) {
    return double(sampleVectors) * p.nprobe / double(p.mostVectors);
}

/// Vectors of each list for a limit, in place of all of `near` lists: a part of
/// more lists is read in less time. But where the nearest lists have all that
/// is near, the k-th of a part is farther, and more is found. 0: all.
idx_t sampleOf(const IvfKnnProblem& p, double near) {
    for (idx_t sample = kIvfEstimateVectors;; sample *= 2) {
        const double share = sampledShare(p, sample);
        if (share > 2.0 / 3) {
            return 0;
        }
        const double found = double(p.numQueries) * p.k * (1 / share - 1);
        if (std::ceil(near / share) <= p.nprobe &&
            ivf_times::ofFound(found) <=
                    (1 - share) * ivf_times::ofReading(p)) {
            return sample;
        }
    }
}

/// Near lists and room that take the least memory; false if that is not much
/// less than all distances would.
bool estimateNear(IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const double k = double(p.k);
    // Of a list, of those that a search may find.
    const double vectors = p.selectedShare * double(p.mostVectors) / p.nprobe;
    const double longest = double(ivfLongestList(p));
    // Of lists no nearer than the near ones k of nprobe / near would pass; and
    // as that is by chance, more. Real lists are farther, and have fewer.
    const double chance = 1.2 + 14 / std::sqrt(k);
    const auto roomOf = [&](double near) {
        return k * (p.nprobe / near) * chance + 64;
    };
    const auto nearOf = [&](double square, idx_t least) {
        return std::max(
                {1.0,
                 double(least) * k / vectors,
                 std::sqrt(
                         square * k * p.nprobe * chance /
                         std::max(vectors, 1.0))});
    };
    const double most = 0.5 * p.nprobe;
    double near = std::min(nearOf(kNearSquareOfFours, 1), most);
    const bool haveFours = near * vectors >= kNearVectorsOfFours * k;
    if (!haveFours) {
        near = nearOf(kNearSquare, kNearVectors);
    }
    plan.boundVectors = haveFours ? kIvfColumnStep : 1;
    const double bytes =
            std::max(4 * near * longest / plan.boundVectors, 12 * roomOf(near));
    if (near > most || near < 1 || bytes > 0.5 * 4 * double(p.mostVectors)) {
        return false;
    }
    near = std::ceil(near);
    plan.room = roundUp(idx_t(roomOf(near)), kIvfRowStep);
    plan.sampleVectors = sampleOf(p, near);
    plan.nearProbes = int(near);
    if (plan.sampleVectors > 0) {
        plan.nearProbes =
                int(std::ceil(near / sampledShare(p, plan.sampleVectors)));
    }
    plan.stride = roundUp(
            estimatesStride(
                    p,
                    plan.nearProbes,
                    plan.sampleVectors > 0 ? plan.sampleVectors : INT_MAX) /
                    plan.boundVectors,
            kIvfRowStep);
    plan.candidates = int(std::min<idx_t>(candidatesOf(p), plan.room));
    return true;
}

/// As many queries at a time as fit, or one.
void fit(IvfKnnPlan& plan, const IvfKnnProblem& p, size_t maxBytes) {
    idx_t most = std::min(
            std::min(p.numQueries, kIvfMostRows),
            std::min(
                    std::max<idx_t>(kMostPairs / p.nprobe, 1),
                    std::max<idx_t>(
                            kMostElements / (plan.stride * plan.boundVectors),
                            1)));
    // In 1, 2, 3, 4, 6, 9... parts: each reads the lists.
    for (idx_t parts = 1;; parts += std::max<idx_t>(parts / 2, 1)) {
        const idx_t rows = (most + parts - 1) / parts;
        setRows(plan, p, rows);
        if (plan.bytes <= maxBytes || rows == 1) {
            break;
        }
    }
    plan.wideTiles = takesWideTiles(p, plan.rowsAtATime);
}

} // namespace

idx_t ivfLongestList(const IvfKnnProblem& p) {
    return p.longestList > 0 ? std::min(p.longestList, p.mostVectors)
                             : p.mostVectors;
}

IvfKnnProblem ivfProblemOfSome(const IvfKnnProblem& p, idx_t count) {
    IvfKnnProblem some = p;
    some.numQueries = count;
    some.mayWait = false;
    some.centroids = nullptr; // their lists are known
    return some;
}

SelectProblem ivfSelection(
        const IvfKnnProblem& p,
        const IvfKnnPlan& plan,
        idx_t rows) {
    SelectProblem select;
    select.rows = rows;
    select.cols = plan.byEstimates() ? plan.candidates : plan.stride;
    select.k = p.k + 1; // one more shows what the last place is tied with
    select.largest = isSimilarity(p.metric);
    select.dropNan = true;
    select.idType = IdType::Int32;
    select.device = p.device;
    return select;
}

SelectProblem ivfLimits(
        const IvfKnnProblem& p,
        const IvfKnnPlan& plan,
        idx_t rows) {
    SelectProblem select = ivfSelection(p, plan, rows);
    select.cols = plan.stride;
    select.k = p.k;
    select.largest = false; // keys
    return select;
}

SelectProblem ivfChoice(
        const IvfKnnProblem& p,
        const IvfKnnPlan& plan,
        idx_t rows) {
    SelectProblem select = ivfLimits(p, plan, rows);
    select.cols = plan.room > 0 ? plan.room : plan.stride;
    select.k = plan.candidates + 1; // one more is the next bound
    return select;
}

bool ivfPairsMeet(const IvfKnnProblem& p) {
    return p.numQueries * p.nprobe >= kTilePairs * p.lists.numLists;
}

IvfKnnPlan planIvfDistances(const IvfKnnProblem& p, size_t maxBytes) {
    checkIvf(p);
    IvfKnnPlan all;
    keepAll(all, p);
    if (p.numQueries > 0) {
        all.listMajor = ivfPairsMeet(p) && p.device.singleToDouble <= 2;
        fit(all, p, maxBytes);
    }
    return all;
}

IvfKnnPlan planIvfKnn(const IvfKnnProblem& p, size_t maxBytes) {
    checkIvf(p);
    IvfKnnPlan direct;
    direct.direct = planIvfDirect(p, maxBytes);
    // No query goes by itself then.
    const bool areMany = p.numQueries > mostIvfDirectQueries(p.lists, p.k);
    const bool mayEstimate = p.mayWait &&
            p.numQueries * p.nprobe >= kEstimatePairs * p.lists.numLists;
    const bool sharesTables =
            direct.direct && direct.direct->shared && direct.direct->byTables;
    if (direct.direct) {
        direct.rowsAtATime = p.numQueries;
        direct.bytes = direct.direct->bytes;
        if (!mayEstimate && !ivfPairsMeet(p) && !sharesTables && !areMany) {
            return direct;
        }
    }
    const IvfKnnPlan all = planIvfDistances(p, maxBytes);
    if (p.numQueries == 0) {
        return all;
    }
    const bool isOneTileOfAList =
            all.wideTiles && p.mostVectors <= p.nprobe * kIvfWideTile;
    const double ofDirect = direct.direct
            ? ivf_times::ofDirect(*direct.direct, p) *
                    (!sharesTables              ? 1
                             : isOneTileOfAList ? kWideTilesMargin
                                                : kTablesMargin)
            : INFINITY;
    // Streams take as long as a query for itself by a direct search, or longer.
    // One that makes a table for each query and list may have no such other,
    // and one of many queries has none.
    const bool mayStream = !ivfPairsMeet(p) &&
            (!direct.direct || areMany ||
             (sharesTables && !planIvfDirectWay(p, maxBytes, false, false)));
    const double ofAll = all.listMajor ? ivf_times::ofTiles(all, p)
            : mayStream                ? ivf_times::ofStreams(p)
                                       : INFINITY;
    if (!mayEstimate) {
        return ofDirect < ofAll ? direct : all;
    }
    IvfKnnPlan best = all;
    double least = ofAll;
    if (ofDirect < least) {
        least = ofDirect;
        best = direct;
    }
    for (bool (*estimate)(IvfKnnPlan&, const IvfKnnProblem&) :
         {estimateAll, estimateNear}) {
        IvfKnnPlan plan;
        plan.listMajor = true;
        if (estimate(plan, p)) {
            fit(plan, p, maxBytes);
            const double time = ivf_times::ofEstimates(plan, p);
            if (time < least) {
                least = time;
                best = plan;
            }
        }
    }
    return best;
}

std::string IvfKnnPlan::toString() const {
    if (direct) {
        return formatMessage(
                "IVF: direct, %s%s%s%s%zu bytes%s",
                direct->findsLists ? "finds lists, " : "",
                direct->shared ? "shares lists, " : "",
                direct->byTables ? "by tables, " : "",
                direct->byTerms ? "of terms, " : "",
                bytes,
                direct->selects ? ("; " + direct->selection.toString()).c_str()
                                : "");
    }
    std::string text = formatMessage(
            "IVF: %s, %lld queries at a time, %zu bytes; ",
            !listMajor          ? "list by list of every query"
                    : wideTiles ? "lists meet queries in wide tiles"
                                : "lists meet queries in tiles",
            (long long)rowsAtATime,
            bytes);
    if (byEstimates()) {
        text += room > 0
                ? formatMessage(
                          "estimates, limits from %s%d lists, room for %lld, ",
                          sampleVectors > 0 ? "a part of " : "",
                          nearProbes,
                          (long long)room)
                : std::string("estimates, ");
        text += formatMessage(
                "%d candidates%s; ",
                candidates,
                scoresByRows ? " that rows score" : "");
    }
    return text + selection.toString();
}

} // namespace faiss_bits
