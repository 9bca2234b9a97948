/// An index for metric spaces dealt out to parts, and their results made one.

#include <algorithm>
#include <random>
#include <set>

#include <faiss/impl/AuxIndexStructures.h>
#include <gtest/gtest.h>

#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/MetricParts.h"
#include "kernels/metric_space/cpu/Build.h"
#include "tests/metric_space/MetricHarness.h"

namespace faiss_bits::test {
namespace {

using faiss_bits::detail::MetricContents;
using faiss_bits::detail::MetricIndexKind;
using gpu::detail::FoundRanges;
using gpu::detail::groupsOfPart;
using gpu::detail::joinBounds;
using gpu::detail::joinByIds;
using gpu::detail::MetricPart;
using gpu::detail::metricPart;
using metric_space::GroupBounds;
using metric_space::HostGroupBounds;

MetricContents contentsOf(const MetricCase& c, MetricIndexKind kind) {
    MetricContents contents;
    contents.kind = kind;
    contents.metric = c.metric;
    contents.d = c.d;
    contents.n = c.n();
    contents.vectors = c.vectors;
    contents.isBuilt = true;
    if (kind == MetricIndexKind::ListOfClusters) {
        contents.listOptions.bucketSize = 7;
        contents.list = metric_space::buildListOfClusters(
                c.view(), contents.listOptions, 1);
    } else {
        contents.pivotOptions.alpha = 0.3;
        contents.table = metric_space::buildPivotTable(
                c.view(), contents.pivotOptions, 1);
    }
    return contents;
}

/// Ids of the whole of numbers in a part.
std::vector<idx_t> namesOf(
        const std::vector<idx_t>& numbers,
        const MetricPart& part) {
    std::vector<idx_t> names;
    for (const idx_t number : numbers) {
        names.push_back(part.ids.at(number));
    }
    return names;
}

void expectVectors(const MetricCase& c, const MetricPart& part) {
    EXPECT_EQ(part.contents.n, idx_t(part.ids.size()));
    EXPECT_TRUE(std::is_sorted(part.ids.begin(), part.ids.end()));
    ASSERT_EQ(part.contents.vectors.size(), part.ids.size() * c.d);
    for (size_t i = 0; i < part.ids.size(); ++i) {
        EXPECT_EQ(
                0,
                std::memcmp(
                        &part.contents.vectors[i * c.d],
                        &c.vectors[part.ids[i] * c.d],
                        c.d * sizeof(float)));
    }
}

TEST(MetricParts, ClustersInTurn) {
    for (const idx_t n : {0, 1, 9, 200}) {
        for (const int kind : {3, 8}) { // with infinities
            MetricCase c = metricCases(Metric::L2, 200, 3)[kind];
            c.vectors.resize(n * c.d);
            const MetricContents whole =
                    contentsOf(c, MetricIndexKind::ListOfClusters);
            for (const int parts : {1, 2, 3, 8}) {
                std::vector<MetricPart> dealt;
                for (int part = 0; part < parts; ++part) {
                    dealt.push_back(metricPart(whole, part, parts));
                    expectVectors(c, dealt.back());
                    EXPECT_EQ(dealt[part].size, dealt[part].contents.n);
                }
                const size_t clusters = whole.list.centers.size();
                std::multiset<idx_t> all;
                for (size_t i = 0; i < clusters; ++i) {
                    const MetricPart& part = dealt[i % parts];
                    const auto& list = part.contents.list;
                    const size_t j = i / parts;
                    EXPECT_EQ(
                            part.ids[list.centers.at(j)],
                            whole.list.centers[i]);
                    EXPECT_EQ(list.radii.at(j), whole.list.radii[i]);
                    const auto members = namesOf(list.members, part);
                    const size_t from =
                            std::min(i * 7, whole.list.members.size());
                    const size_t to =
                            std::min(from + 7, whole.list.members.size());
                    for (size_t m = from; m < to; ++m) {
                        EXPECT_EQ(
                                members.at(j * 7 + m - from),
                                whole.list.members[m]);
                    }
                }
                idx_t size = 0;
                for (const MetricPart& part : dealt) {
                    EXPECT_TRUE(part.contents.isBuilt);
                    const auto& list = part.contents.list;
                    for (const auto* ids :
                         {&list.centers, &list.members, &list.rest}) {
                        for (const idx_t id : namesOf(*ids, part)) {
                            all.insert(id);
                        }
                    }
                    size += part.size;
                }
                EXPECT_EQ(size, c.n());
                EXPECT_EQ(all.size(), size_t(c.n()));
                EXPECT_EQ(
                        std::set<idx_t>(all.begin(), all.end()).size(),
                        size_t(c.n()));
            }
        }
    }
}

TEST(MetricParts, NeighboursOfPivotsInTurn) {
    for (const int kind : {2, 8}) {
        const MetricCase c = metricCases(Metric::L1, 700, 3)[kind];
        const MetricContents whole = contentsOf(c, MetricIndexKind::Sss);
        for (const int parts : {1, 2, 5, 16}) {
            std::vector<MetricPart> dealt;
            std::multiset<idx_t> all;
            idx_t size = 0;
            for (int part = 0; part < parts; ++part) {
                dealt.push_back(metricPart(whole, part, parts));
                const MetricPart& one = dealt.back();
                expectVectors(c, one);
                const auto& table = one.contents.table;
                EXPECT_EQ(namesOf(table.pivots, one), whole.table.pivots);
                for (const auto* ids : {&table.order, &table.rest}) {
                    for (const idx_t id : namesOf(*ids, one)) {
                        all.insert(id);
                    }
                }
                size += one.size;
            }
            for (size_t i = 0; i < whole.table.order.size(); ++i) {
                const size_t group = i / 64;
                const MetricPart& part = dealt[group % parts];
                const size_t place = group / parts * 64 + i % 64;
                EXPECT_EQ(
                        part.ids[part.contents.table.order.at(place)],
                        whole.table.order[i]);
            }
            EXPECT_EQ(size, c.n());
            EXPECT_EQ(all.size(), size_t(c.n()));
            EXPECT_EQ(
                    std::set<idx_t>(all.begin(), all.end()).size(),
                    size_t(c.n()));
        }
    }
}

/// Bounds of so many groups, cut into parts.
std::vector<HostGroupBounds> dealBounds(
        const HostGroupBounds& whole,
        int parts) {
    std::vector<HostGroupBounds> dealt(parts);
    const uint32_t rows =
            whole.kind == GroupBounds::Pivots ? whole.numReferences : 1;
    for (int part = 0; part < parts; ++part) {
        HostGroupBounds& to = dealt[part];
        to = whole;
        to.numGroups = groupsOfPart(whole.numGroups, part, parts);
        to.numBounded = groupsOfPart(whole.numBounded, part, parts);
        to.leasts.clear();
        to.mosts.clear();
        for (uint32_t row = 0; row < rows; ++row) {
            for (uint32_t g = part; g < whole.numBounded; g += parts) {
                const size_t at = size_t(row) * whole.numBounded + g;
                to.leasts.push_back(whole.leasts[at]);
                to.mosts.push_back(whole.mosts[at]);
            }
        }
        if (whole.kind != GroupBounds::Centers) {
            continue;
        }
        to.references.clear();
        to.referenceIds.clear();
        for (uint32_t g = part; g < whole.numBounded; g += parts) {
            to.referenceIds.push_back(whole.referenceIds[g]);
            for (int i = 0; i < whole.d; ++i) {
                to.references.push_back(whole.references[g * whole.d + i]);
            }
        }
        to.numReferences = to.numBounded;
    }
    return dealt;
}

TEST(MetricParts, BoundsOfAllParts) {
    for (const GroupBounds kind : {GroupBounds::Centers, GroupBounds::Pivots}) {
        for (const uint32_t bounded : {0u, 1u, 5u, 24u}) {
            for (const uint32_t rest : {0u, 3u}) {
                HostGroupBounds whole;
                whole.d = 2;
                whole.numIds = 1000;
                whole.kind = kind;
                whole.numBounded = bounded;
                whole.numGroups = bounded + rest;
                const bool isCenters = kind == GroupBounds::Centers;
                whole.numReferences = isCenters ? bounded : 3;
                for (uint32_t i = 0; i < whole.numReferences * 2; ++i) {
                    whole.references.push_back(float(i));
                }
                for (uint32_t i = 0; isCenters && i < bounded; ++i) {
                    whole.referenceIds.push_back(100 + i);
                }
                for (uint32_t i = 0; i < (isCenters ? 1 : 3) * bounded; ++i) {
                    whole.leasts.push_back(i);
                    whole.mosts.push_back(i + 0.5);
                }
                for (const int parts : {1, 2, 3, 8}) {
                    const HostGroupBounds got =
                            joinBounds(dealBounds(whole, parts));
                    EXPECT_EQ(got.numGroups, whole.numGroups);
                    EXPECT_EQ(got.numBounded, whole.numBounded);
                    EXPECT_EQ(got.numReferences, whole.numReferences);
                    EXPECT_EQ(got.references, whole.references);
                    EXPECT_EQ(got.referenceIds, whole.referenceIds);
                    EXPECT_EQ(got.leasts, whole.leasts);
                    EXPECT_EQ(got.mosts, whole.mosts);
                }
            }
        }
    }
}

TEST(MetricParts, ResultsByIds) {
    std::mt19937 random(3);
    for (const int parts : {1, 2, 3, 17}) {
        const size_t nq = 7;
        std::vector<FoundRanges> found(parts);
        std::vector<std::vector<std::pair<idx_t, float>>> want(nq);
        for (size_t q = 0; q < nq; ++q) {
            for (idx_t id = 0; id < 300 && q != 4; ++id) {
                if (random() % 3 == 0) {
                    const float distance = float(random() % 50);
                    want[q].emplace_back(id, distance);
                    // Some parts have runs, and some nothing.
                    auto& of = found[id / 10 * 7 % parts];
                    of.ids.push_back(id);
                    of.distances.push_back(distance);
                }
            }
            for (FoundRanges& of : found) {
                of.limits.push_back(of.ids.size());
            }
        }
        std::vector<const FoundRanges*> all;
        for (const FoundRanges& of : found) {
            all.push_back(&of);
        }
        faiss::RangeSearchResult result(nq);
        for (size_t q = 0; q < nq; ++q) {
            result.lims[q] = want[q].size();
        }
        result.do_allocation();
        joinByIds(all, 0, 3, &result);
        joinByIds(all, 3, nq, &result);
        for (size_t q = 0; q < nq; ++q) {
            ASSERT_EQ(result.lims[q + 1] - result.lims[q], want[q].size());
            for (size_t i = 0; i < want[q].size(); ++i) {
                EXPECT_EQ(result.labels[result.lims[q] + i], want[q][i].first);
                EXPECT_EQ(
                        result.distances[result.lims[q] + i],
                        want[q][i].second);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
