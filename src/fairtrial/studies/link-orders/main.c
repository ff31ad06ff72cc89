/* Calls the small functions in an order that the numbers decide, so that where each lies matters. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EACH(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15) DO(16)
#define DECLARE(number) uint64_t step_##number(uint64_t state);
#define CALL(number) case number - 1: state = step_##number(state); break;

EACH(DECLARE)

int main(int count, char **words)
{
    uint64_t state = 88172645463325252u;
    long calls = count > 1 ? atol(words[1]) : 1000000;
    for (long call = 0; call < calls; call++)
        switch (state >> 60) {
            EACH(CALL)
        }
    printf("%llu\n", (unsigned long long) state);
    return 0;
}
