/* TestU01's SmallCrush on 32-bit words from standard input. docs/random.md has the command.
 *
 * With the argument "reversed", the bits of each word are, too: SmallCrush looks at upper bits more than at lower ones. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bbattery.h"
#include "unif01.h"

static uint32_t words[1 << 16];
static size_t next, have;
static int reversed;

static unsigned int word(void)
{
    if (next == have) {
        have = fread(words, sizeof *words, sizeof words / sizeof *words, stdin);
        next = 0;
        if (have == 0) {
            fputs("smallcrush: the words ended\n", stderr);
            exit(1);
        }
    }
    uint32_t w = words[next++];
    if (reversed) {
        uint32_t r = 0;
        for (int bit = 0; bit < 32; bit++)
            r |= (w >> bit & 1) << (31 - bit);
        w = r;
    }
    return w;
}

int main(int count, char **arguments)
{
    reversed = count > 2 && strcmp(arguments[2], "reversed") == 0;
    char name[64];
    snprintf(name, sizeof name, "%s%s", count > 1 ? arguments[1] : "words", reversed ? ", reversed" : "");
    unif01_Gen *generator = unif01_CreateExternGenBits(name, word);
    bbattery_SmallCrush(generator);
    unif01_DeleteExternGenBits(generator);
    return 0;
}
