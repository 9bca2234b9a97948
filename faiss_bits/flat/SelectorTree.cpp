#include "faiss_bits/flat/SelectorTree.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/flat/DeviceSelector.h"

namespace faiss_bits::gpu::detail {

using faiss_bits::detail::requireNotNull;
using Kind = SelectorTree::Kind;

namespace {

SelectorTree rangeOf(idx_t first, idx_t end, idx_t n) {
    SelectorTree tree;
    tree.first = std::clamp<idx_t>(first, 0, n);
    tree.end = std::clamp<idx_t>(end, tree.first, n);
    tree.least = tree.most = tree.end - tree.first;
    return tree;
}

SelectorTree arrayOf(const faiss::IDSelectorArray& array, idx_t n) {
    if (array.n > 0) {
        requireNotNull(array.ids, "ids of an IDSelectorArray");
    }
    SelectorTree tree;
    tree.kind = Kind::Ids;
    tree.ids = array.ids;
    tree.numIds = array.n;
    tree.most = std::min(n, tree.numIds);
    return tree;
}

SelectorTree batchOf(const faiss::IDSelectorBatch& batch, idx_t n) {
    SelectorTree tree;
    tree.kind = Kind::Ids;
    tree.ownIds.reserve(std::min<size_t>(batch.set.size(), n));
    for (const idx_t id : batch.set) {
        if (0 <= id && id < n) {
            tree.ownIds.push_back(id);
        }
    }
    tree.ids = tree.ownIds.data();
    tree.numIds = tree.ownIds.size();
    tree.least = tree.most = tree.numIds;
    return tree;
}

/// Set bits among the first n.
idx_t countBits(const uint8_t* bytes, size_t numBytes, idx_t n) {
    const size_t whole = std::min<size_t>(numBytes, n / 8);
    idx_t count = 0;
    size_t at = 0;
    for (; at + 8 <= whole; at += 8) {
        uint64_t word;
        std::memcpy(&word, bytes + at, 8);
        count += std::popcount(word);
    }
    for (; at < whole; ++at) {
        count += std::popcount(bytes[at]);
    }
    if (whole < numBytes && n % 8 != 0 && whole == size_t(n / 8)) {
        const unsigned inside = bytes[whole] & ((1u << (n % 8)) - 1);
        count += std::popcount(inside);
    }
    return count;
}

SelectorTree bytesOf(const uint8_t* bytes, size_t numBytes, idx_t n) {
    SelectorTree tree;
    tree.kind = Kind::Bytes;
    tree.bytes = bytes;
    tree.numBytes = std::min<size_t>(numBytes, (n + 7) / 8);
    tree.least = tree.most = countBits(bytes, tree.numBytes, n);
    return tree;
}

SelectorTree membersOf(const faiss::IDSelector& selector, idx_t n) {
    std::vector<uint8_t> bytes((n + 7) / 8);
    for (idx_t id = 0; id < n; ++id) {
        if (selector.is_member(id)) {
            bytes[id / 8] |= uint8_t(1u << (id % 8));
        }
    }
    SelectorTree tree = bytesOf(bytes.data(), bytes.size(), n);
    tree.ownBytes = std::move(bytes);
    tree.bytes = tree.ownBytes.data();
    return tree;
}

SelectorTree preparedOf(const DeviceSelector& prepared, idx_t n, int device) {
    FAISS_THROW_IF_NOT_FMT(
            prepared.numVectors() == n,
            "a DeviceSelector was made for n = %lld vectors, but the index "
            "holds %lld",
            (long long)prepared.numVectors(),
            (long long)n);
    FAISS_THROW_IF_NOT_FMT(
            prepared.device() == device,
            "a DeviceSelector lies on device = %d, but the index on %d",
            prepared.device(),
            device);
    SelectorTree tree;
    tree.kind = Kind::Prepared;
    tree.prepared = &prepared;
    tree.least = tree.most = prepared.numSelected();
    return tree;
}

std::unique_ptr<SelectorTree> operandOf(
        const faiss::IDSelector* selector,
        const char* name,
        idx_t n,
        int device) {
    requireNotNull(selector, name);
    return std::make_unique<SelectorTree>(readSelector(*selector, n, device));
}

SelectorTree complementOf(const faiss::IDSelectorNot& no, idx_t n, int device) {
    SelectorTree tree;
    tree.kind = Kind::Not;
    tree.left = operandOf(no.sel, "sel of an IDSelectorNot", n, device);
    tree.least = n - tree.left->most;
    tree.most = n - tree.left->least;
    return tree;
}

#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
template <class Selector>
SelectorTree pairOf(
        Kind kind,
        const Selector& selector,
        const char* lhsName,
        const char* rhsName,
        idx_t n,
        int device) {
    SelectorTree tree;
    tree.kind = kind;
    tree.left = operandOf(selector.lhs, lhsName, n, device);
    tree.right = operandOf(selector.rhs, rhsName, n, device);
    const SelectorTree& a = *tree.left;
    const SelectorTree& b = *tree.right;
    if (kind == Kind::And) {
        tree.least = std::max<idx_t>(0, a.least + b.least - n);
        tree.most = std::min(a.most, b.most);
    } else if (kind == Kind::Or) {
        tree.least = std::max(a.least, b.least);
        tree.most = std::min(n, a.most + b.most);
    } else {
        tree.least = std::max<idx_t>({0, a.least - b.most, b.least - a.most});
        tree.most = std::min({n, a.most + b.most, 2 * n - a.least - b.least});
    }
    return tree;
}
#endif

} // namespace

SelectorTree readSelector(
        const faiss::IDSelector& selector,
        idx_t n,
        int device) {
    if (auto* one = dynamic_cast<const DeviceSelector*>(&selector)) {
        return preparedOf(*one, n, device);
    }
    if (auto* one = dynamic_cast<const faiss::IDSelectorRange*>(&selector)) {
        return rangeOf(one->imin, one->imax, n);
    }
    if (dynamic_cast<const faiss::IDSelectorAll*>(&selector)) {
        return rangeOf(0, n, n);
    }
    if (auto* one = dynamic_cast<const faiss::IDSelectorArray*>(&selector)) {
        return arrayOf(*one, n);
    }
    if (auto* one = dynamic_cast<const faiss::IDSelectorBatch*>(&selector)) {
        return batchOf(*one, n);
    }
    if (auto* one = dynamic_cast<const faiss::IDSelectorBitmap*>(&selector)) {
        if (one->n > 0) {
            requireNotNull(one->bitmap, "bitmap of an IDSelectorBitmap");
        }
        return bytesOf(one->bitmap, one->n, n);
    }
    if (auto* one = dynamic_cast<const faiss::IDSelectorNot*>(&selector)) {
        return complementOf(*one, n, device);
    }
#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
    if (auto* one = dynamic_cast<const faiss::IDSelectorAnd*>(&selector)) {
        return pairOf(
                Kind::And,
                *one,
                "lhs of an IDSelectorAnd",
                "rhs of an IDSelectorAnd",
                n,
                device);
    }
    if (auto* one = dynamic_cast<const faiss::IDSelectorOr*>(&selector)) {
        return pairOf(
                Kind::Or,
                *one,
                "lhs of an IDSelectorOr",
                "rhs of an IDSelectorOr",
                n,
                device);
    }
    if (auto* one = dynamic_cast<const faiss::IDSelectorXOr*>(&selector)) {
        return pairOf(
                Kind::Xor,
                *one,
                "lhs of an IDSelectorXOr",
                "rhs of an IDSelectorXOr",
                n,
                device);
    }
#endif
    return membersOf(selector, n);
}

} // namespace faiss_bits::gpu::detail
