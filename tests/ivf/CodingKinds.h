#pragma once

#include "kernels/ivf/IvfLists.h"

namespace faiss_bits::test {

/// A coding and layout of lists, by a name for tests.
struct CodingKind {
    const char* name;
    ListCoding coding;
    ListLayout layout;
    int partBits = 8;
};

inline constexpr CodingKind kCodingKinds[] = {
        {"Float32", ListCoding::Float32, ListLayout::Interleaved},
        {"Float32Rows", ListCoding::Float32, ListLayout::Rows},
        {"Float16", ListCoding::Float16, ListLayout::Interleaved},
        {"Float16Rows", ListCoding::Float16, ListLayout::Rows},
        {"Scalar8", ListCoding::Scalar8, ListLayout::Interleaved},
        {"Scalar8Rows", ListCoding::Scalar8, ListLayout::Rows},
        {"Scalar6", ListCoding::Scalar6, ListLayout::Interleaved},
        {"Scalar4", ListCoding::Scalar4, ListLayout::Interleaved},
        {"Scalar4Rows", ListCoding::Scalar4, ListLayout::Rows},
        {"Product8", ListCoding::Product, ListLayout::Interleaved},
        {"Product8Rows", ListCoding::Product, ListLayout::Rows},
        {"Product5", ListCoding::Product, ListLayout::Interleaved, 5}};

} // namespace faiss_bits::test
