#include "faiss_bits/many/PartFilters.h"

#include <algorithm>
#include <cstring>
#include <typeinfo>

#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/flat/DeviceSelector.h"

namespace faiss_bits::gpu::detail {

IdBits::IdBits(const SelectorTree& tree, idx_t n) : IdBits(n) {
    using Kind = SelectorTree::Kind;
    switch (tree.kind) {
        case Kind::Range:
            setRange(
                    std::clamp<idx_t>(tree.first, 0, n),
                    std::clamp<idx_t>(tree.end, 0, n));
            return;
        case Kind::Ids:
            for (idx_t i = 0; i < tree.numIds; ++i) {
                if (tree.ids[i] >= 0 && tree.ids[i] < n) {
                    set(tree.ids[i]);
                }
            }
            return;
        case Kind::Bytes: {
            const size_t count = std::min(numBytes(), tree.numBytes);
            if (count > 0) {
                std::memcpy(bytes_.data(), tree.bytes, count);
            }
            clearBehind_();
            return;
        }
        case Kind::Prepared:
            for (idx_t i = 0; i < n; ++i) {
                if (tree.prepared->is_member(i)) {
                    set(i);
                }
            }
            return;
        default:
            break;
    }
    const IdBits left(*tree.left, n);
    const IdBits right = tree.right ? IdBits(*tree.right, n) : IdBits(n);
    for (size_t i = 0; i < numBytes(); ++i) {
        const uint8_t a = left.bytes_[i];
        const uint8_t b = right.bytes_[i];
        bytes_[i] =
                uint8_t(tree.kind == Kind::Not           ? ~a
                                : tree.kind == Kind::And ? a & b
                                : tree.kind == Kind::Or  ? a | b
                                                         : a ^ b);
    }
    clearBehind_();
}

void IdBits::clearBehind_() {
    if (n_ % 8 != 0) {
        bytes_[n_ / 8] &= uint8_t((1 << (n_ % 8)) - 1);
    }
}

void IdBits::setRange(idx_t first, idx_t end) {
    while (first < end && first % 8 != 0) {
        set(first++);
    }
    if (first < end) {
        std::memset(bytes_.data() + first / 8, 0xFF, size_t(end - first) / 8);
        first += (end - first) / 8 * 8;
    }
    while (first < end) {
        set(first++);
    }
}

uint64_t IdBits::read_(idx_t at) const {
    uint64_t low = 0;
    std::memcpy(&low, bytes_.data() + at / 8, sizeof(low));
    const int shift = int(at % 8);
    if (shift == 0) {
        return low;
    }
    const uint64_t high = bytes_[at / 8 + 8];
    return low >> shift | high << (64 - shift);
}

void IdBits::write_(idx_t at, uint64_t bits) {
    const int shift = int(at % 8);
    uint64_t low = 0;
    std::memcpy(&low, bytes_.data() + at / 8, sizeof(low));
    low |= bits << shift;
    std::memcpy(bytes_.data() + at / 8, &low, sizeof(low));
    if (shift != 0) {
        bytes_[at / 8 + 8] |= uint8_t(bits >> (64 - shift));
    }
}

void IdBits::copyFrom(const IdBits& source, idx_t from, idx_t to, idx_t count) {
    for (idx_t i = 0; i < count; i += 64) {
        uint64_t bits = source.read_(from + i);
        if (count - i < 64) {
            bits &= (uint64_t(1) << (count - i)) - 1;
        }
        write_(to + i, bits);
    }
}

struct PartFilters::Part {
    explicit Part(IdBits given)
            : bits(std::move(given)), selector(bits.numBytes(), bits.bytes()) {
        params.sel = &selector;
    }

    IdBits bits;
    faiss::IDSelectorBitmap selector;
    faiss::SearchParameters params;
};

namespace {

/// A selector, or null.
const faiss::IDSelector* selectorOf(const faiss::SearchParameters* params) {
    if (!params) {
        return nullptr;
    }
    FAISS_THROW_IF_NOT_FMT(
            typeid(*params) == typeid(faiss::SearchParameters),
            "params is a %s: an index on several devices takes a "
            "SearchParameters, of which sel counts",
            faiss::demangle_cpp_symbol(typeid(*params).name()).c_str());
    return params->sel;
}

} // namespace

PartFilters::PartFilters(
        const faiss::SearchParameters* params,
        const ShardMap& map,
        int device) {
    const faiss::IDSelector* selector = selectorOf(params);
    if (!selector) {
        return;
    }
    const idx_t n = map.total();
    const IdBits all(readSelector(*selector, n, device), n);
    for (int shard = 0; shard < map.numShards(); ++shard) {
        const auto& segments = map.segments(shard);
        IdBits bits(map.size(shard));
        for (size_t i = 0; i < segments.size(); ++i) {
            const idx_t end = i + 1 < segments.size() ? segments[i + 1].inPart
                                                      : map.size(shard);
            bits.copyFrom(
                    all,
                    segments[i].inWhole,
                    segments[i].inPart,
                    end - segments[i].inPart);
        }
        parts_.push_back(std::make_shared<Part>(std::move(bits)));
    }
}

PartFilters::PartFilters(
        const faiss::SearchParameters* params,
        int numReplicas,
        idx_t ntotal,
        int device,
        bool isOneThread) {
    const faiss::IDSelector* selector = selectorOf(params);
    if (!selector) {
        return;
    }
    if (isOneThread) {
        asTheyAre_ = params;
        return;
    }
    // Read once: several threads must not ask it at the same time, and a
    // DeviceSelector lies on one device.
    const SelectorTree tree = readSelector(*selector, ntotal, device);
    parts_.assign(numReplicas, std::make_shared<Part>(IdBits(tree, ntotal)));
}

const faiss::SearchParameters* PartFilters::operator[](int part) const {
    return parts_.empty() ? asTheyAre_ : &parts_[part]->params;
}

} // namespace faiss_bits::gpu::detail
