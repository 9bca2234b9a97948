#include "kernels/words/Utf8.h"

#include "kernels/common/Error.h"

namespace faiss_bits::words {

namespace {

/// Reads one code point at `at` and steps over it; false if there is none.
bool readCodePoint(const uint8_t*& at, const uint8_t* end, uint32_t& value) {
    const uint32_t first = *at;
    if (first < 0x80) {
        value = first;
        ++at;
        return true;
    }
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    // 0x80 .. 0xC1 begin nothing (0xC0, 0xC1: overlong), nor does 0xF5 on.
    if (first < 0xC2 || first > 0xF4 || end - at <= more) {
        return false;
    }
    value = first & (0x3Fu >> more);
    for (int i = 1; i <= more; ++i) {
        if ((at[i] & 0xC0) != 0x80) {
            return false;
        }
        value = value << 6 | (at[i] & 0x3Fu);
    }
    const uint32_t least = more == 3 ? 0x10000 : more == 2 ? 0x800 : 0x80;
    if (value < least || value > 0x10FFFF ||
        (0xD800 <= value && value < 0xE000)) {
        return false;
    }
    at += more + 1;
    return true;
}

} // namespace

LetterWords decodeUtf8(const Utf8Words& words) {
    BITS_THROW_IF_NOT_FMT(
            words.count >= 0,
            "%s: their number %lld is negative",
            words.name,
            (long long)words.count);
    LetterWords out;
    out.begins.reserve(size_t(words.count) + 1);
    out.begins.push_back(0);
    if (words.count == 0) {
        return out;
    }
    BITS_THROW_IF_NOT_FMT(
            words.offsets, "%s: offsets is a null pointer", words.name);
    BITS_THROW_IF_NOT_FMT(
            words.bytes || words.offsets[words.count] == words.offsets[0],
            "%s: bytes is a null pointer",
            words.name);
    out.letters.reserve(size_t(words.offsets[words.count] - words.offsets[0]));
    const auto* bytes = reinterpret_cast<const uint8_t*>(words.bytes);
    for (idx_t i = 0; i < words.count; ++i) {
        BITS_THROW_IF_NOT_FMT(
                words.offsets[i] <= words.offsets[i + 1],
                "%s: offsets[%lld] = %lld is above the next, %lld",
                words.name,
                (long long)i,
                (long long)words.offsets[i],
                (long long)words.offsets[i + 1]);
        const uint8_t* at = bytes + words.offsets[i];
        const uint8_t* const begin = at;
        const uint8_t* const end = bytes + words.offsets[i + 1];
        while (at < end) {
            uint32_t value = 0;
            BITS_THROW_IF_NOT_FMT(
                    readCodePoint(at, end, value),
                    "%s[%lld] is not UTF-8: byte %lld is 0x%02X",
                    words.name,
                    (long long)i,
                    (long long)(at - begin),
                    unsigned(*at));
            out.letters.push_back(value);
        }
        out.begins.push_back(idx_t(out.letters.size()));
    }
    return out;
}

} // namespace faiss_bits::words
