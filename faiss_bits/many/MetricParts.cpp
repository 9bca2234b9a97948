#include "faiss_bits/many/MetricParts.h"

#include <algorithm>

namespace faiss_bits::gpu::detail {

using faiss_bits::detail::kPivotGroup;
using faiss_bits::detail::MetricContents;
using faiss_bits::detail::MetricIndexKind;
using metric_space::GroupBounds;
using metric_space::HostGroupBounds;
using metric_space::kRestGroup;

namespace {

/// What part `part` has of values in groups of `size`: the first of them is
/// group `before` of all.
std::vector<idx_t> dealGroups(
        const std::vector<idx_t>& values,
        idx_t size,
        idx_t before,
        int part,
        int parts) {
    std::vector<idx_t> dealt;
    const idx_t count = idx_t(values.size());
    for (idx_t first = 0; first < count; first += size) {
        if ((before + first / size) % parts == part) {
            dealt.insert(
                    dealt.end(),
                    values.begin() + first,
                    values.begin() + std::min(first + size, count));
        }
    }
    return dealt;
}

/// Numbers of ids among those of a part.
void renumber(std::vector<idx_t>& ids, const std::vector<idx_t>& numbers) {
    for (idx_t& id : ids) {
        id = numbers[size_t(id)];
    }
}

idx_t groupsIn(const std::vector<idx_t>& values, idx_t size) {
    return (idx_t(values.size()) + size - 1) / size;
}

} // namespace

MetricPart metricPart(const MetricContents& whole, int part, int parts) {
    MetricPart result;
    MetricContents& c = result.contents;
    c.kind = whole.kind;
    c.metric = whole.metric;
    c.d = whole.d;
    c.listOptions = whole.listOptions;
    c.pivotOptions = whole.pivotOptions;
    c.isBuilt = true;
    std::vector<std::vector<idx_t>*> lists;
    if (whole.kind == MetricIndexKind::ListOfClusters) {
        const auto& from = whole.list;
        auto& to = c.list;
        const idx_t clusters = idx_t(from.centers.size());
        to.bucketSize = from.bucketSize;
        for (idx_t i = part; i < clusters; i += parts) {
            to.centers.push_back(from.centers[i]);
            to.radii.push_back(from.radii[i]);
        }
        to.members = dealGroups(from.members, from.bucketSize, 0, part, parts);
        to.rest = dealGroups(from.rest, kRestGroup, clusters, part, parts);
        result.size = to.centers.size() + to.members.size() + to.rest.size();
        lists = {&to.centers, &to.members, &to.rest};
    } else {
        const auto& from = whole.table;
        auto& to = c.table;
        to.maxDistance = from.maxDistance;
        to.pivots = from.pivots;
        to.order = dealGroups(from.order, kPivotGroup, 0, part, parts);
        to.rest = dealGroups(
                from.rest,
                kRestGroup,
                groupsIn(from.order, kPivotGroup),
                part,
                parts);
        result.size = to.order.size() + to.rest.size();
        lists = {&to.pivots, &to.order, &to.rest};
    }
    std::vector<idx_t> numbers(size_t(whole.n), -1);
    for (const auto* list : lists) {
        for (const idx_t id : *list) {
            numbers[size_t(id)] = 0;
        }
    }
    for (idx_t id = 0; id < whole.n; ++id) {
        if (numbers[size_t(id)] < 0) {
            continue;
        }
        numbers[size_t(id)] = idx_t(result.ids.size());
        result.ids.push_back(id);
        const float* row = whole.vectors.data() + id * whole.d;
        c.vectors.insert(c.vectors.end(), row, row + whole.d);
    }
    c.n = idx_t(result.ids.size());
    for (auto* list : lists) {
        renumber(*list, numbers);
    }
    return result;
}

HostGroupBounds joinBounds(const std::vector<HostGroupBounds>& parts) {
    const uint32_t count = uint32_t(parts.size());
    HostGroupBounds all = parts.front();
    all.numGroups = 0;
    all.numBounded = 0;
    for (const HostGroupBounds& part : parts) {
        all.numGroups += part.numGroups;
        all.numBounded += part.numBounded;
    }
    if (all.kind == GroupBounds::Centers) {
        all.numReferences = all.numBounded;
        all.references.clear();
        all.referenceIds.clear();
        for (uint32_t g = 0; g < all.numBounded; ++g) {
            const HostGroupBounds& of = parts[g % count];
            const float* row = of.references.data() + size_t(g / count) * of.d;
            all.references.insert(all.references.end(), row, row + of.d);
            all.referenceIds.push_back(of.referenceIds[g / count]);
        }
    }
    const auto interleave = [&](std::vector<double> HostGroupBounds::*bounds) {
        const uint32_t rows =
                all.kind == GroupBounds::Pivots ? all.numReferences : 1;
        std::vector<double>& to = all.*bounds;
        to.clear();
        for (uint32_t row = 0; row < rows; ++row) {
            for (uint32_t g = 0; g < all.numBounded; ++g) {
                const HostGroupBounds& of = parts[g % count];
                to.push_back(
                        (of.*bounds)[size_t(row) * of.numBounded + g / count]);
            }
        }
    };
    interleave(&HostGroupBounds::leasts);
    interleave(&HostGroupBounds::mosts);
    return all;
}

} // namespace faiss_bits::gpu::detail
