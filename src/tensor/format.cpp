// Layout of printed tensors: which elements, how each number is written, where lines break.
#include "tensor/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <vector>

namespace prong {

namespace {

std::mutex options_mutex;
PrintOptions current_options;

// The elements that are shown, in order: at most `edge` from each end of a dimension when
// summarised.
class Elements {
 public:
  Elements(const Tensor& t, bool summarize, int edge) : t_(t), summarize_(summarize), edge_(edge) {
    walk(0, 0);
  }
  std::vector<double> numbers;    // of a floating tensor, and the real parts of a complex one
  std::vector<double> imaginary;  // of a complex one
  std::vector<int64_t> integers;  // of any other

 private:
  void walk(size_t dim, int64_t offset) {
    if (dim == t_.sizes().size()) return take(offset);
    const int64_t size = t_.sizes()[dim], stride = t_.strides()[dim];
    const bool cut = summarize_ && size > 2 * edge_;
    for (int64_t i = 0; i < size; ++i) {
      if (cut && i == edge_) i = size - edge_;
      if (i < size) walk(dim + 1, offset + i * stride);
    }
  }
  void take(int64_t offset) {
    if (is_complex(t_.dtype()))
      return visit_complex(t_.dtype(), [&](auto tag) {
        const auto z = static_cast<const typename decltype(tag)::type*>(t_.raw())[offset];
        numbers.push_back(static_cast<double>(z.real()));
        imaginary.push_back(static_cast<double>(z.imag()));
      });
    visit(t_.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T x = static_cast<const T*>(t_.raw())[offset];
      if (is_floating(t_.dtype()))
        numbers.push_back(static_cast<double>(x));
      else
        integers.push_back(static_cast<int64_t>(x));
    });
  }
  const Tensor& t_;
  bool summarize_;
  int edge_;
};

std::string print(const char* format, int precision, double x) {
  if (std::isnan(x)) return "nan";
  const int length = std::snprintf(nullptr, 0, format, precision, x);
  std::string text(static_cast<size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, format, precision, x);
  return text;
}

void pad_left(std::string& text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
}

struct Texts {
  std::vector<std::string> items;
  size_t width = 1;
};

// One form for all numbers of a tensor: "1." when all are whole, "1.0000", or "1.0000e+00" when
// they are far apart.
Texts write_numbers(const std::vector<double>& numbers, const PrintOptions& options) {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  bool any = false, whole = true, scientific = false;
  for (double x : numbers) {
    if (!std::isfinite(x) || x == 0) continue;
    any = true;
    whole &= x == std::ceil(x);
    smallest = std::min(smallest, std::fabs(x));
    largest = std::max(largest, std::fabs(x));
  }
  if (any)
    scientific =
        options.sci_mode.value_or(largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4);
  Texts out;
  for (double x : numbers) {
    std::string text;
    if (scientific) {
      text = print("%.*e", options.precision, x);
    } else if (whole) {
      text = print("%.*f", 0, x);
      if (std::isfinite(x)) text += '.';
    } else {
      text = print("%.*f", options.precision, x);
    }
    // Zeros, infinities and NaN do not take part in finding the width.
    if (std::isfinite(x) && x != 0) out.width = std::max(out.width, text.size());
    out.items.push_back(std::move(text));
  }
  return out;
}

Texts write_integers(const std::vector<int64_t>& integers, bool as_bool) {
  Texts out;
  for (int64_t x : integers) {
    out.items.push_back(as_bool ? (x ? "True" : "False") : std::to_string(x));
    out.width = std::max(out.width, out.items.back().size());
  }
  return out;
}

// Both parts in their own form: "1.+2.j".
Texts write_complex(const Elements& elements, const PrintOptions& options) {
  Texts real = write_numbers(elements.numbers, options);
  const Texts imaginary = write_numbers(elements.imaginary, options);
  for (size_t i = 0; i < real.items.size(); ++i) {
    std::string& text = real.items[i];
    pad_left(text, real.width);
    const std::string& part = imaginary.items[i];
    text += cat(part[0] == '-' || part[0] == '+' ? "" : "+", part, "j");
  }
  real.width += imaginary.width + 1;
  return real;
}

class Layout {
 public:
  Layout(const Tensor& t, bool summarize, const PrintOptions& options, const Texts& texts)
      : t_(t), summarize_(summarize), options_(options), texts_(texts) {}

  void write(std::string& out, size_t dim, int indent) {
    const size_t rank = t_.sizes().size();
    if (rank == 0) {
      out += texts_.items[0];
      return;
    }
    if (dim + 1 == rank) return write_row(out, indent);
    std::string separator = ",";
    separator.append(rank - dim - 1, '\n').append(static_cast<size_t>(indent) + 1, ' ');
    out += '[';
    const int64_t size = t_.sizes()[dim];
    const bool cut = is_cut(size);
    for (int64_t i = 0, shown = cut ? 2 * options_.edgeitems : size; i < shown; ++i) {
      if (cut && i == options_.edgeitems) out.append("...").append(separator);
      write(out, dim + 1, indent + 1);
      if (i + 1 < shown) out += separator;
    }
    if (cut && options_.edgeitems == 0) out += "...";
    out += ']';
  }

 private:
  bool is_cut(int64_t size) const { return summarize_ && size > 2 * options_.edgeitems; }

  void write_row(std::string& out, int indent) {
    const int64_t size = t_.sizes().back();
    const bool cut = is_cut(size);
    std::vector<std::string_view> items;
    if (summarize_ && options_.edgeitems == 0) {
      items.push_back("...");
    } else {
      for (int64_t i = 0, shown = cut ? 2 * options_.edgeitems : size; i < shown; ++i) {
        if (cut && i == options_.edgeitems) items.push_back(" ...");
        items.push_back(texts_.items[next_++]);
      }
    }
    const int per_line =
        std::max(1, (options_.linewidth - indent) / (static_cast<int>(texts_.width) + 2));
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        out += ',';
        if (i % static_cast<size_t>(per_line) == 0)
          out.append("\n").append(static_cast<size_t>(indent) + 1, ' ');
        else
          out += ' ';
      }
      out += items[i];
    }
    out += ']';
  }

  const Tensor& t_;
  bool summarize_;
  const PrintOptions& options_;
  const Texts& texts_;
  size_t next_ = 0;
};

std::string write_elements(const Tensor& t, int indent, const PrintOptions& options) {
  if (t.numel() == 0) return "[]";
  const bool summarize = static_cast<double>(t.numel()) > options.threshold;
  const Elements elements(t, summarize, options.edgeitems);
  Texts texts = is_floating(t.dtype())
                    ? write_numbers(elements.numbers, options)
                    : write_integers(elements.integers, t.dtype() == DType::kBool);
  if (is_complex(t.dtype()))
    texts = write_complex(elements, options);
  else
    for (std::string& text : texts.items) pad_left(text, texts.width);
  std::string out;
  Layout(t, summarize, options, texts).write(out, 0, indent);
  return out;
}

std::string tuple_text(const Dims& sizes) {
  std::string out = "(";
  for (size_t i = 0; i < sizes.size(); ++i) out += cat(i ? ", " : "", sizes[i]);
  return out + (sizes.size() == 1 ? ",)" : ")");
}

}  // namespace

PrintOptions PrintOptions::profile(std::string_view name, PrintOptions base) {
  PRONG_CHECK(name == "default" || name == "short" || name == "full", kValue,
              "set_printoptions: profile must be 'default', 'short' or 'full', got '", name, "'");
  const bool is_short = name == "short";
  base.precision = is_short ? 2 : 4;
  base.edgeitems = is_short ? 2 : 3;
  base.threshold = name == "full" ? std::numeric_limits<double>::infinity() : 1000;
  base.linewidth = 80;
  return base;
}

PrintOptions print_options() {
  std::lock_guard lock(options_mutex);
  return current_options;
}

void set_print_options(const PrintOptions& options) {
  PRONG_CHECK(options.precision >= 0 && options.edgeitems >= 0, kValue,
              "set_printoptions: precision and edgeitems must not be negative, got ",
              options.precision, " and ", options.edgeitems);
  std::lock_guard lock(options_mutex);
  current_options = options;
}

std::string format_tensor(const Tensor& t, std::string_view prefix,
                          std::span<const std::string> suffixes, const PrintOptions& options) {
  const int indent = static_cast<int>(prefix.size());
  std::string out(prefix);
  out += write_elements(t, indent, options);

  std::vector<std::string> all;
  const bool empty = t.numel() == 0,
             is_default = t.dtype() == default_dtype() ||
                          (!empty && t.dtype() == complex_dtype(default_dtype()));
  if ((empty && t.rank() != 1) || (!empty && options.edgeitems == 0))
    all.push_back("size=" + tuple_text(t.sizes()));
  // Elements tell int64 and bool from the rest; an empty tensor has none.
  if (!is_default && (empty || (t.dtype() != DType::kInt64 && t.dtype() != DType::kBool)))
    all.push_back(cat("dtype=torch.", t.dtype()));
  all.insert(all.end(), suffixes.begin(), suffixes.end());

  const size_t newline = out.rfind('\n');
  size_t line = newline == std::string::npos ? out.size() + 2 : out.size() - newline + 1;
  for (const std::string& suffix : all) {
    if (line + suffix.size() + 2 > static_cast<size_t>(std::max(options.linewidth, 0))) {
      out.append(",\n").append(prefix.size(), ' ');
      line = prefix.size() + suffix.size();
    } else {
      out += ", ";
      line += suffix.size() + 2;
    }
    out += suffix;
  }
  return out + ")";
}

std::string to_string(const Tensor& t) {
  if (!t.defined()) return "None";
  const std::string suffix = "requires_grad=True";
  return format_tensor(t, "tensor(",
                       std::span<const std::string>(&suffix, t.requires_grad() ? 1 : 0),
                       print_options());
}

}  // namespace prong
