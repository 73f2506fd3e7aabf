// Exceptions through frames with destructors, of several types, nested, rethrown, out of constructors, and across
// qsort; and what of the standard library has code of its own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <locale>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int destroyed;
struct Guard { int n; ~Guard() { destroyed += n; } };
struct Base { virtual ~Base() = default; virtual int which() const { return 1; } };
struct Derived : Base { int which() const override { return 2; } };

__attribute__((noinline)) static int deep(int depth, int kind) {
    Guard guard{depth};
    if (depth == 0) {
        switch (kind % 5) {
        case 0: throw std::runtime_error("runtime");
        case 1: throw kind;
        case 2: throw Derived();
        case 3: std::vector<int>(3).at(9); break;
        default: throw std::string("text");
        }
    }
    double kept = depth * 1.5;
    return deep(depth - 1, kind) + static_cast<int>(kept);
}

struct Throws { Guard guard{1000}; std::string text = "part"; Throws(int kind) { deep(3, kind); } };

static std::string caught(int kind) {
    try {
        try {
            if (kind % 2) deep(kind % 40, kind); else Throws one(kind);
        } catch (const std::logic_error &error) {
            std::throw_with_nested(std::runtime_error("nested"));
        } catch (const Base &base) {
            if (kind % 4 == 3) throw;
            return "base " + std::to_string(base.which());
        }
    } catch (const std::exception &error) {
        try { std::rethrow_if_nested(error); } catch (const std::exception &) { return "nested"; }
        return error.what();
    } catch (int number) { return std::to_string(number); }
    catch (const std::string &text) { return text; }
    catch (...) { return "other"; }
    return "none";
}

static int compare(const void *a, const void *b) {
    if (*static_cast<const int *>(a) == 777) throw 777;
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

int main() {
    for (int kind = 0; kind < 400; kind++) std::cout << caught(kind) << (kind % 10 == 9 ? "\n" : " ");
    int numbers[] = {5, 3, 777, 1, 4};
    try { std::qsort(numbers, 5, sizeof(int), compare); } catch (int number) { std::cout << "qsort " << number << "\n"; }
    std::map<std::string, int> count;
    std::ifstream text("text");
    for (std::string word; text >> word;) count[word]++;
    int row = 0;
    for (const auto &[word, times] : count) if (row++ % 100 == 0) std::cout << word << "=" << times << "\n";
    std::ostringstream out;
    out.imbue(std::locale::classic());
    for (int i = 0; i < 50; i++) out << std::hex << i * 7919 << " " << i / 7.0 << " ";
    std::cout << out.str() << "\n" << std::regex_replace(std::string("probe 12 site 345"), std::regex("[0-9]+"), "<$&>") << "\n";
    std::vector<std::thread> threads;
    std::vector<int> sums(4);
    for (int t = 0; t < 4; t++) threads.emplace_back([t, &sums] { for (int i = 0; i < 50; i++) try { deep(i % 20, 1); } catch (...) { sums[t]++; } });
    for (auto &thread : threads) thread.join();
    std::cout << sums[0] + sums[1] + sums[2] + sums[3] << " " << dynamic_cast<Derived *>(std::make_unique<Base>().get()) << "\n";
    if (sums[0] != 50) std::cout << "lost\n";
    throw std::out_of_range("the end");
}
