#include "kernels/words/cpu/QueryScan.h"

#include <algorithm>
#include <bit>

namespace faiss_bits::words::cpu {

void QueryScan::addNode(uint32_t node, uint32_t distance) {
    const uint32_t end = dictionary_.nodes[node + 1].words;
    for (uint32_t i = dictionary_.nodes[node].words; i < end; ++i) {
        part.add(i, distance);
    }
}

void QueryScan::walkTrie(uint32_t query, const SubtreeLengths& lengths) {
    if (!blocks_) {
        blocks_.emplace(dictionary_, lengths);
    }
    blocks_->run(
            queries_.word(query),
            queries_.length(query),
            most_,
            nodes,
            [&](uint32_t node, uint32_t distance) { addNode(node, distance); });
}

QueryPattern& QueryScan::patternOf(uint32_t query) {
    if (!pattern_) {
        pattern_.emplace(dictionary_);
    }
    pattern_->set(queries_.word(query), queries_.length(query));
    return *pattern_;
}

void QueryScan::scanGroup(
        QueryPattern& pattern,
        const WordGroups& groups,
        uint32_t group) {
    uint32_t distances[WordGroups::kSize];
    pattern.distances(groups, group, distances);
    const uint32_t words = groups.words(group);
    for (uint32_t i = 0; i < words; ++i) {
        if (distances[i] <= most_) {
            part.add(groups.places(group)[i], distances[i]);
        }
    }
    comparisons += words;
}

void QueryScan::scanAll(uint32_t query, const WordGroups& groups) {
    QueryPattern& pattern = patternOf(query);
    for (uint32_t group = 0; group < groups.count(); ++group) {
        scanGroup(pattern, groups, group);
    }
}

void QueryScan::scanClusters(uint32_t query, const ListOfClusters& clusters) {
    QueryPattern& pattern = patternOf(query);
    const WordGroups& centers = clusters.centers;
    for (uint32_t group = 0; group < centers.count(); ++group) {
        uint32_t distances[WordGroups::kSize];
        pattern.distances(centers, group, distances);
        for (uint32_t i = 0; i < centers.words(group); ++i) {
            const uint64_t distance = distances[i];
            const uint32_t cluster = group * WordGroups::kSize + i;
            const uint64_t radius = clusters.radii[cluster];
            ++comparisons;
            if (distance <= most_) {
                part.add(centers.places(group)[i], distances[i]);
            }
            if (distance <= radius + most_) {
                scanBucket(pattern, clusters, cluster);
            }
            // Strictly: words at the radius itself may be in later buckets.
            if (distance + most_ < radius) {
                return;
            }
        }
    }
}

void QueryScan::scanBucket(
        QueryPattern& pattern,
        const ListOfClusters& clusters,
        uint32_t cluster) {
    for (uint32_t i = 0; i < ListOfClusters::kBucketGroups; ++i) {
        const uint32_t group = cluster * ListOfClusters::kBucketGroups + i;
        if (clusters.buckets.words(group) > 0) {
            scanGroup(pattern, clusters.buckets, group);
        }
    }
}

void QueryScan::scanPivots(uint32_t query, const Pivots& pivots) {
    QueryPattern& pattern = patternOf(query);
    toPivots_.clear();
    for (uint32_t group = 0; group < pivots.pivots.count(); ++group) {
        uint32_t distances[WordGroups::kSize];
        pattern.distances(pivots.pivots, group, distances);
        for (uint32_t i = 0; i < pivots.pivots.words(group); ++i) {
            toPivots_.push_back(uint16_t(std::min(distances[i], 0xFFFFu)));
        }
    }
    comparisons += toPivots_.size();
    PivotTest test;
    test.query = toPivots_.data();
    test.pivots = pivots.count();
    test.most = uint16_t(std::min(most_, 0xFFFFu));
    const auto n = uint32_t(dictionary_.size());
    uint32_t places[WordGroups::kSize], count = 0;
    const auto compare = [&] {
        candidates_.clear();
        candidates_.add(dictionary_, places, count);
        scanGroup(pattern, candidates_, 0);
        count = 0;
    };
    const auto& survivors = wordKernels().survivors;
    for (uint32_t first = 0; first < n; first += Pivots::kBlock) {
        test.words = pivots.block(first / Pivots::kBlock);
        for (uint64_t bits = survivors(test); bits; bits &= bits - 1) {
            const auto place = first + uint32_t(std::countr_zero(bits));
            if (place >= n) {
                break;
            }
            places[count++] = place;
            if (count == WordGroups::kSize) {
                compare();
            }
        }
    }
    if (count > 0) {
        compare();
    }
}

} // namespace faiss_bits::words::cpu
