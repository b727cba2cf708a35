"""Objects of games: how their boxes are made, and what these are (objects.py)."""

RULES = """
adventure: 012345 8 0 5
  player 64-148 92-200 2-6 5-11 color=42
  player 132-168 14-170 2-6 5-11 color=56
  player 0-82 14-186 2-6 5-11 color=88
  player at r11-1 r12*-2+238 3x8
  gate at r6 r7*-2+238 1xr16 if r21=9-27
  gate at r8 r9*-2+238 1xr17 if r22=9-27
  red_dragon at r6 r7*-2+238 1xr16 if r21=54
  red_dragon at r8 r9*-2+238 1xr17 if r22=54
  yellow_dragon at r6 r7*-2+238 1xr16 if r21=63
  yellow_dragon at r8 r9*-2+238 1xr17 if r22=63
  green_dragon at r6 r7*-2+238 1xr16 if r21=72
  green_dragon at r8 r9*-2+238 1xr17 if r22=72
  dragon_sword at r6 r7*-2+238 1xr16 if r21=90
  dragon_sword at r8 r9*-2+238 1xr17 if r22=90
  yellow_key at r6 r7*-2+238 8xr16 if r21=99
  yellow_key at r8 r9*-2+238 8xr17 if r22=99
  white_key at r6 r7*-2+238 8xr16 if r21=108
  white_key at r8 r9*-2+238 8xr17 if r22=108
  black_key at r6 r7*-2+238 8xr16 if r21=117
  black_key at r8 r9*-2+238 8xr17 if r22=117
  black_bat at r6 r7*-2+238 1xr16 if r21=126
  black_bat at r8 r9*-2+238 1xr17 if r22=126
  chalice at r6 r7*-2+238 8xr16 if r21=144
  chalice at r8 r9*-2+238 8xr17 if r22=144
  magnet at r6 r7*-2+238 1xr16 if r21=153
  magnet at r8 r9*-2+238 1xr17 if r22=153
alien: 012345 8 0 5
  pulsar 74-80 15-19 3-10 3-7
  player 23-120 31-109 4-8 11-13 color=142
  egg 14-146 0-189 1-2 1-3
  alien 21-134 16-180 4-11 8-18 color=94
  alien 53-146 64-180 4-11 8-18 color=30
  player 35-118 31-109 4-8 13 color=78
  alien 41-90 112-180 4-11 8-18 color=190
amidar: 012345 8 2 5
  player 127-151 41-156 4-10 4-10 color=30
  warrior 3-151 0-182 4-10 4-10 color=216
  shadow at r66+++9 r59+++7 7x7 grid 7x1 0 0 if r73++&32=32 if r51=103
assault: 002345 8 1 5
  mother_ship 0-136 0-41 20-44 10-29
  player 39-131 176-183 2-11 5-11
  enemy 0-153 31-126 9-22 5-11
  player_missile_vertical 40-145 29-197 1-2 1-32 color=14
asterix: 012345 8 2 5
  enemy 0-156 4-160 7 11
  consumable 0-156 5-161 7 10
  reward 45-120 20-160 6 11
  player 19-140 4-160 8-16 11
asteroids: 012345 8 2 5
  asteroid 1-159 14-194 3-4 5-12 move=1,1
  asteroid 1-159 14-194 6-8 10-16 move=1,1
  player 12-153 0-186 4-8 6-10 color=76
  player_missile 5-160 15-195 1 2
  asteroid 1-159 20-194 3-16 7-28
atlantis: 002345 8 1 5
  acropolis_command_post 60-84 90-134 8 8
  sentry 0-164 90-147 5-11 4-11 color=58
  generator 50-155 102-159 1-6 5-11
  domed_palace 26-50 126-170 10-22 5-11
  bridged_bazaar 84-108 137-181 10-22 5-11
  deathray 0-82 70-114 1-3 55-117
  bandit_bomber 0-153 0-105 9 7
  aqua_plane 4-28 149-193 16 7
  gorgon_ship 0-155 0-105 11-15 6-8
  projectile 12-160 12-119 1-2 1-2
bank_heist: 012345 8 0 5
  dynamite 0-158 43-103 4-8 2
  bank 4-148 24-188 5-11 4-10 color=6
  player 0-152 39-107 3-11 3-10 color=36
  bank at r29++ r9+++37 8x7 grid 3x1 0 0 if r9++=1-255 if r24++=253
  police at r29++ r9+++37 8x7 grid 3x1 0 0 if r9++=1-255 if r24++=254
  dynamite at r32-1 r12+37 8x2 if r12=1-255
  player at r28 r8+37 8x7
battle_zone: 012345 8 2 5
  radar 62-86 0-25 14-30 21-45
  blue_tank 71-156 88-94 7-27 6-21
  red_thing 19-66 91-95 7-17 4-10 color=74
  player 0-44 108-174 96-158 25-34
  red_thing 7-56 71-117 3-11 1-7 color=72
  player at 19 140 122x38
  radar_content at r74*-1/9+94 r82*-1+34 7x7 if r82=0-254
  blue_tank at r48+1 r47*-1+97 6x4 if r73=1 if r48=1-255 if r46=6-13
  blue_tank at r48+2 r47*-1+97 12x9 if r73=1 if r48=1-255 if r46=14-21
  blue_tank at r48+1 r47*-1+97 16x12 if r73=1 if r48=1-255 if r46=22-34
  blue_tank at r48+9 r47*-1+97 22x14 if r73=1 if r48=1-255 if r46=35-36
  blue_tank at r48+1 r47*-1+97 16x15 if r73=1 if r48=1-255 if r46=37-40
  blue_tank at r48+13 r47*-1+97 20x17 if r73=1 if r48=1-255 if r46=41-46
  blue_tank at r48+1 r47*-1+97 16x10 if r73=1 if r48=1-255 if r46=0 if r47=0-6
  blue_tank at r48+3 r47*-1+97 16x14 if r73=1 if r48=1-255 if r46=0 if r47=7
  blue_tank at r48+1 r47*-1+97 16x15 if r73=1 if r48=1-255 if r46=0 if r47=8
  blue_tank at r48+13 r47*-1+97 20x17 if r73=1 if r48=1-255 if r46=0 if r47=9
  blue_tank at r54+1 r53*-1+97 6x4 if r81=1 if r54=1-255 if r52=6-13
  blue_tank at r54+2 r53*-1+97 12x9 if r81=1 if r54=1-255 if r52=14-21
  blue_tank at r54+1 r53*-1+97 16x12 if r81=1 if r54=1-255 if r52=22-34
  blue_tank at r54+9 r53*-1+97 22x14 if r81=1 if r54=1-255 if r52=35-36
  blue_tank at r54+1 r53*-1+97 16x15 if r81=1 if r54=1-255 if r52=37-40
  blue_tank at r54+13 r53*-1+97 20x17 if r81=1 if r54=1-255 if r52=41-46
beam_rider: 002345 8 1 5
  player 14-140 142-186 9-21 10-22
  saucer 46-81 46-63 3-4 2 color=8
berzerk: 012345 8 2 5
  enemy 0-144 0-176 8 16-18
  player 0-39 42-107 4-8 20-24
  player_missile 2-42 0-189 1-2 3-9 color=60
  enemy_missile 2-78 22-106 1-4 2-6 color=54
  enemy at r65+++6 r56++*2+4 8x16 grid 8x1 0 0 if r65++=1-255 if r56++=0-126
  player_missile at r22+2 r23*2+3 1x6 if r15=1-255 if r21=1
  player_missile at r22+2 r23*2-1 1x6 if r15=1-255 if r21=2
  player_missile at r22+4 r23*2+2 4x2 if r15=1-255 if r21=4-5
  player_missile at r22+4 r23*2 4x2 if r15=1-255 if r21=6
  player_missile at r22 r23*2 4x2 if r15=1-255 if r21=7-15
bowling: 012345 1 0 5
  pin 109-147 97-177 1-3 2-6
  player 6-44 117-161 5-11 20-44
  ball 1-159 87-185 4 6
boxing: 012345 8 0 5
  player 22-86 19-138 12-34 45-47 color=12 size=14x46
  enemy 20-123 18-146 12-34 46-47 color=0 size=14x46 right
breakout: 012345 8 0 5
  block 0-100 35-109 10-195 3-9
  ball 0-163 72-216 2 2-4
  player 0-156 167-211 10-22 2-6
carnival: 002345 8 1 5
  wheel 68-76 13-17 14-38 7-17
  player 16-158 164-208 3-9 8-18
  duck 0-168 46-111 4-8 15 color=24
  owl 0-171 25-69 1-11 8-21 color=72
  flying_duck 15-79 88-185 10-22 9-21
  rabbit 0-169 25-111 3-8 15 color=10
  extra_bullets 0-171 52-96 5-8 9
centipede: 012345 8 0 5
  spider 6-147 85-198 7-11 3-9 color=102
  spider 20-130 85-198 7-11 3-9 color=214
  centipede_segment 0-160 0-200 4-40 5-6 size=3x6 cells=4,0
  mushroom 12-148 0-182 4 3
  player 34-142 139-174 2-6 5-13
  projectile 30-153 0-185 1 9
  centipede_segment 5-152 0-154 2-4 5-6
  centipede_segment at r100+++17 r91++&31*-9+176 3x6 grid 9x1 0 0 if r91++&31=0-19
chopper_command: 012345 1 0 5 175-187/2
  mini_truck 56-104 185 1 2
  mini_enemy 56-104 179-183 2 2 color=46
  mini_truck 56-106 185 2-16 2 size=1x2 cells=2,0
  player 16-137 62-137 10-22 5-13
  truck 6-160 159-165 2-8 5-7
  enemy_helicopter 0-169 45-155 1-11 5-13 color=14
  enemy_plane 10-160 68-88 3-8 4-6
  mini_player 62-90 157-205 1-3 1-3 color=32
  shot 6-158 67-142 4-72 1
crazy_climber: 002345 8 1 5
  player 29-55 136-185 7-19 11-32
  window at 44 r58+47 8x8 grid 2x12 64 13 if r46++&247=0
  window at 56 r58+47 8x8 grid 2x12 40 13 if r46++=0-8
  window at 68 r58+47 8x8 grid 2x12 16 13 if r46++=0-4
  window at 68 r58+47 8x8 grid 2x12 16 13 if r46++=12-16
demon_attack: 002345 17 3 5
  player 24-147 152-196 4-10 7-17
  enemy 8-156 21-156 14-16 6-7
  player_missile 26-150 0-197 1 5-10
  enemy_missile at h20+12 179 1x4 grid 8x10 1 -8 bits 37 7 -1
  enemy_part at h13+++12 r69++*-1+175 30x7 grid 3x1 0 0 if r29++=1-3
  enemy_part at h17+++12 r69++*-1+175 30x7 grid 3x1 0 0 if r29++=1-3
  player at h16+12 174 7x12
  player_missile at h22+14 r21*-1+178 1x8
donkey_kong: 012345 8 4 -
  donkey_kong 22-46 0-37 10-22 12-26
  girlfriend 51-75 0-40 5-11 10-22
  barrel 20-132 30-207 5-11 4-11
  hammer 28-52 46-90 1-3 4-10
  player 25-120 149-199 5-11 9-23
  ladder at 108 176 4x17
  ladder at 48 148 4x17 grid 2x1 32 0
  ladder at 88 120 4x17 grid 2x1 20 0
  ladder at 48 92 4x17 grid 2x1 20 0
  ladder at 108 64 4x17
  ladder at 32 40 4x17 grid 2x1 44 0
double_dunk: 012345 8 0 5
  backboard 56-80 6-50 15-33 10-22
  basket 74-78 40-44 5-11 5-13
  opponent_big 74-78 111-115 5-11 9-19 color=82
  player_big 92-120 47-91 8 16-18 color=180
  opponent_big 43-144 28-126 7-8 15-25 color=226
  ball 45-114 7-190 4 2-6
  player_small 73-81 78-85 4-11 7-19 color=180
  player_big 45-114 44-106 7-8 14-25 color=232
  opponent_small 44-100 41-157 7-8 17-22
  player_small at r39+11 r35*-1+163 8x19
  player_big at r37+11 r33*-1+159 8x23
  opponent_small at r40+11 r36*-1+163 8x19
  opponent_big at r38+11 r34*-1+159 8x23
  ball at r47+12 r46*-1+178 4x4
enduro: 012345 8 0 5
  player 67-80 141-146 10-22 7-15
fishing_derby: 012345 8 0 5
  fish 4-160 82-190 5-11 3-8 size=8x10 move=0,-2
  shark 6-117 58-102 22-48 8-18
  player_one_hook at r23-r34-2 r65*23/10+78 3x3 if r30=16
  player_one_hook at r23+r34+1 r65*23/10+78 3x3 if r30=0-15
  player_one_hook at r23+r34+1 r65*23/10+78 3x3 if r30=17-255
  player_two_hook at r24-r35+2 r66*23/10+78 3x3 if r31=16
  player_two_hook at r24+r35+5 r66*23/10+78 3x3 if r31=0-15
  player_two_hook at r24+r35+5 r66*23/10+78 3x3 if r31=17-255
freeway: 012345 8 2 5
  car 0-168 5-129 5-8 10
frogger: 012345 8 2 5
  frog 27-131 113-193 4-11 4-10 color=214
  car 0-150 107-163 8-16 7
frostbite: 012345 8 0 5
  house 100-124 29-73 5-44 2-6
  bird 0-41 60-156 6-8 6-7
  player 42-89 28-172 4-8 2-19
  floating_block 6-138 94-176 10-22 4-10 color=12
  floating_block 14-134 94-124 10-22 4-10 color=152
galaxian: 012345 8 2 5
  enemy_ship 10-150 14-160 5-8 7-10
  player 29-125 148-192 8 14
  player_missile 49-115 15-163 1 3
gopher: 012345 8 0 5
  carrot 48-104 129-173 5-11 17-37
  floor 0-12 154-198 112-160 19
  hole 138-142 159-163 5-11 9-30
  gopher 0-147 160-186 7-14 10-23
  player 37-150 74-118 4-10 32-68
  floor at 0 183 150x12
  hole at 140 176 8x7 if r17&24=24 if r11&24=0-23
  hole at 124 176 8x7 if r16&1=1 if r17&1=1 if r10&1=0
  hole at 108 176 8x7 if r16&24=24 if r10&24=0-23
  hole at 44 176 8x7 if r13&1=1 if r14&1=1 if r7&1=0
  hole at 28 176 8x7 if r13&24=24 if r7&24=0-23
  hole at 12 176 8x7 if r12&128=128 if r13&128=128 if r6&128=0
  hole at 140 169 8x14 if r11&24=24 if r5&24=0-23
  hole at 124 169 8x14 if r10&1=1 if r11&1=1 if r4&1=0
  hole at 108 169 8x14 if r10&24=24 if r4&24=0-23
  hole at 44 169 8x14 if r7&1=1 if r8&1=1 if r1&1=0
  hole at 28 169 8x14 if r7&24=24 if r1&24=0-23
  hole at 12 169 8x14 if r6&128=128 if r7&128=128 if r0&128=0
  hole at 140 161 8x22 if r5&24=24
  hole at 124 161 8x22 if r4&1=1 if r5&1=1
  hole at 108 161 8x22 if r4&24=24
  hole at 44 161 8x22 if r1&1=1 if r2&1=1
  hole at 28 161 8x22 if r1&24=24
  hole at 12 161 8x22 if r0&128=128 if r1&128=128
hero: 012345 8 0 5
  wall 0-156 0-122 8-72 37-118
  player 3-66 0-97 6-8 16-24
  bomb 10-63 65-112 1-6 4-15
ice_hockey: 000005 8 2 5
  enemy 23-119 7-181 12-22 21-32
  ball 31-127 40-186 1-3 1-3
  player at r59-13 r55*-1+168 16x20
  player at r57-13 r53*-1+168 16x20
  enemy at r60-13 r56*-1+168 16x20
  enemy at r58-13 r54*-1+168 16x20
  ball at r52-10 r91*-1+188 2x2
jamesbond: 012345 8 2 5
  enemy_shot 80-84 75-79 1-2 2-6 color=8
  ice 110-167 35-79 5-8 9-12
  player 12-79 77-141 5-11 2-6
  fire_hole 15-136 100-145 10-22 31-65
  hornet 12-158 73-77 5-11 9-19
  helicopter 2-170 35-79 3-9 6-8
  enemy_shot 43-98 88-121 1-2 2-9 color=254
  player_shot 41-125 54-111 1-2 2-7
kangaroo: 012345 8 2 5
  bell 81-105 14-58 3-9 7-15
  fruit 27-131 38-130 4-10 7-15
  monkey 94-164 0-181 3-11 8-21 color=58
  falling_coconut 5-49 0-191 1-3 1-5 color=36
  child 101-141 0-34 5-11 9-21
  player 4-52 110-186 5-11 9-33
  ladder at 132 132 8x35 if r36=0
  ladder at 20 85 8x35 if r36=0
  ladder at 132 37 8x35 if r36=0
  platform at 16 28 128x4 grid 1x4 0 48 if r36=0
  thrown_coconut at r28+++15 r25++*8+1 2x3 grid 3x1 0 0 if r25++=0-254
keystone_kapers: 012345 8 0 5
king_kong: 012345 8 0 5
  player 33-40 92-96 5-11 9-19
  ladder at 12 111 8x18 grid 2x3 128 48
  ladder at 76 87 8x18 grid 1x3 0 48
  ladder at 20 63 8x18 grid 2x1 112 0
  ladder at 76 43 8x18
krull: 012345 8 2 5
  player 39-99 46-138 7 20 color=168
  weapon 57-135 155-159 5-11 4-10
  window 74-78 21-25 5-11 16-36
  spider 64-93 60-108 5-11 5-14
  lyssa 71-155 81-176 7 16
  slayer_shot 42-108 48-165 1-7 6-7
  slayers 26-152 5-175 3-11 9-22 color=180
  player 26-130 66-154 3-11 5-22 color=56
  fire_mare 35-137 143-148 4-11 5-13
kung_fu_master: 012345 8 2 5
  knifes 29-99 126-154 3-9 1-5
  player 72-159 100-134 1-22 18-48 color=0
  henchmen 6-85 124-128 3-11 22-46
  knife_throwers 6-78 124-128 2-11 22-46
mario_bros: 012345 8 0 5
  platform 0-156 35-157 10-130 1-5
  pow_block 60-84 119-163 10-22 4-10
  player 0-163 4-182 7-8 17-23
  fireball 0-164 47-133 4-11 6-17 color=58
  pest 2-160 7-148 4-11 5-17 color=230
montezuma_revenge: 012345 8 2 5
  barrier 8-148 32-76 2-6 24-50
  rope 100-124 74-118 1-2 25-53
  key 1-25 77-121 4-10 9-21
  skull 42-116 144-190 7-8 11-13
  player 20-156 34-188 7-8 14-20
  platform at 0 93 56x2 grid 2x1 104 0 if r3=1
  platform at 68 93 23x2 if r3=1
  platform at 76 136 8x5 if r3=1
  platform at 8 136 28x2 grid 2x1 116 0 if r3=1
  platform at 16 180 128x1 if r3=1
  wall at 0 96 8x40 grid 2x1 152 0 if r3=1
  wall at 0 136 16x45 grid 2x1 144 0 if r3=1
  ladder at 72 93 16x42 if r3=1
  ladder at 16 136 16x45 grid 2x1 112 0 if r3=1
  conveyer_belt at 60 136 15x5 grid 2x1 25 0 if r3=1
ms_pacman: 012345 8 0 5
  pill 0-160 0-161 2-6 1-3
  ghost 0-158 0-156 5-11 5-14 color=38
  power_pill 0-160 0-37 2-6 4-10
  ghost 52-158 0-121 5-11 5-14 color=184
  ghost 58-158 28-154 5-11 5-14 color=88
  ghost 0-158 0-153 5-11 5-14 color=70
  player 18-110 0-150 3-11 5-14 color=42
name_this_game: 012345 8 0 5
  octopus 8-32 7-51 78-162 21-45
  player 39-135 137-141 5-11 8-18
  treasure 60-84 141-185 10-22 3-9
  tentacle 4-152 41-106 4-8 6
  shark 0-162 13-113 8 12
  oxygen_pipe 15-150 1-45 1-2 79-167
  oxygen_boat 10-141 9-17 3-8 5-13 joins
  shot 53-134 31-131 1-2 1-5
pacman: 012345 8 0 5
  power_pill 0-162 17-193 4 10
  ghost 24-100 69-183 8 16
  player 0-101 90-186 7-8 8-14
  ghost at r50++ r55++*2+25 8x16 grid 4x1 0 0
  player at r49 r89*2+1 8x16
  power_pill at 6 39 4x10 if r26&32=32
  power_pill at 6 171 4x10 if r26&16=16
  power_pill at 150 39 4x10 if r26&8=8
  power_pill at 150 171 4x10 if r26&4=4
phoenix: 012345 8 0 5
  player 31-102 171-178 3-10 3-14
  phoenix 0-141 31-157 3-11 3-13
  player_projectile 24-114 0-192 1 5-6 color=218
  enemy_projectile 35-93 66-156 1-2 2-10 color=58
  enemy_projectile 35-93 60-182 1 4-6 color=14
  enemy_projectile 70-89 70-148 1-2 3-9 color=100
  player_projectile at r93-71 r89*-1+201 1x6
  player at r94-70 173 7x10
pitfall: 012345 8 2 5
  logs 123-127 116-120 3-9 9-19
  stair 66-90 114-158 2-6 27-57
  wall 124-148 126-170 4-10 20-44
  player 6-150 92-106 2-11 10-29
  crocodile 48-104 97-144 5-11 3-13
  scorpion 65-102 147-192 5-11 6-15
  platform at 8 180 152x1
  stair_pit at 76 122 8x6 if r20=0-1
  platform at 8 125 68x8 if r20=0
  platform at 84 125 77x8 if r20=0
  platform at 8 125 40x8 if r20=1-4
  platform at 112 125 48x8 if r20=1-4
  platform at 60 125 16x8 if r20=1
  platform at 84 125 16x8 if r20=1
  pit at 48 122 12x6 grid 2x1 52 0 if r20=1
  tarpit at 48 120 64x10 if r20=2
  waterhole at 48 120 64x10 if r20=3-4
  platform at 8 125 152x8 if r20=5-6 if r32&128=128
pong: 012345 8 0 5
  enemy 14-18 15-199 2-6 2-22 within=34-194
  player 138-142 15-199 2-6 2-22 within=34-194
  ball 8-169 11-214 1-3 2-7
pooyan: 012345 8 0 012345
  player 118-142 40-126 5-11 9-19
  bait 114-126 61-65 5-11 2-6 color=86
  bait 118-142 46-90 5-11 2-6 color=14
  enemy 42-111 68-177 7-8 6-7
  arrow 26-142 46-132 5-11 1-2
  balloon 42-110 60-169 6-8 7-8
private_eye: 012345 8 2 5
  player 6-157 29-153 8 25
  car 0-154 121-185 11-27 9-37
  player at r63 r97*-1+150 8x12 if r97=0
  player at r63 r97*-1+150 8x25 if r97=1-255
qbert: 012345 8 0 5
  cube 0-144 12-200 13-27 3-7
  disk 0-152 116-160 5-11 1-3
  player 1-102 0-210 8 15-21 color=52
  coily 50-86 104-183 8 15-21 color=102
riverraid: 012345 8 2 5 163-163/1
  helicopter 45-112 0-24 4-11 1-10 color=176
  helicopter 45-112 0-24 5-11 2-7 color=128
  player 52-99 123-167 5-7 13-14
  helicopter 45-115 0-183 5-8 2-10 color=42
  house 6-141 0-24 10-22 8-22 color=12
  tanker 55-106 0-176 14-16 3-8
  house 6-141 0-183 10-16 2-19 color=0
  player_missile 55-100 0-166 1 6-8
  house 16-137 0-4 10 6-10 color=218
  fuel_depot 51-112 0-24 4-10 1-25 color=12
  fuel_depot 51-112 0-183 7 2-24 color=72
  player_missile at r117-1 r50*-1+162 1x8 if r117=1-255 if r50=0-162
road_runner: 012345 8 2 5
  player 57-157 74-166 8 23-32
  enemy 110-146 97-121 7-8 28-29
seaquest: 012345 8 2 5
  player 40-104 24-120 16 7-11
  shark 0-169 43-166 3-8 6-7 color=200
  collected_diver 56-60 176-180 5-11 5-13
  oxygen_bar 46-54 167-172 4-63 5-6
  diver 0-168 44-116 4-8 6-13 color=134
  player_missile 0-169 35-127 4-8 1
skiing: 012345 8 0 5
  player 7-146 37-46 7-8 15-18
  mogul 38-115 10-197 16 3-6
  flag 40-114 30-176 5 6-14
  tree 15-141 10-181 10-16 2-30 color=198
  tree 31-136 30-161 5-22 1-41 color=212
  tree 18-161 10-181 10-16 3-30 color=214
  tree at r62++-3 r86++*-1+182 16xr54++ grid 8x1 0 0 to 152,179 if r70++=85 if r54++=1-254 if r86++=0-178 if r62++=0-154
  tree at 8 r86++*-1+182 r62++*-1+164xr54++ grid 8x1 0 0 to 152,179 if r70++=85 if r54++=1-254 if r86++=0-178 if r62++=155-255
space_invaders: 012345 8 0 5
  shield 30-118 135-179 4-11 11-25
  player 22-76 163-207 4-11 6-14
  alien 10-136 9-143 5-11 5-14
  bullet 29-116 21-194 1-2 3-17
star_gunner: 012345 8 0 5
  bomb_thrower 0-148 15-59 4-10 6-14
  player 38-114 34-204 8 4
  bomb 16-148 30-202 4 1
  flying_enemy 18-110 61-102 3-11 6-14
tennis: 002345 8 1 5
  player 22-109 0-84 7-22 14-32
  ball_shadow 32-58 111-161 2 4 color=14
  enemy 10-99 92-187 7-22 14-32
  ball 39-119 16-100 1-3 1-6 color=14
  ball_shadow 44-124 26-177 1-3 1-3 color=2
  ball at r16-2 r54*-1+189 2x2 if r16=3-255
  ball_shadow at r16-2 r55*-1+189 2x2 if r16=3-255
up_n_down: 012345 8 0 5
  truck 4-150 9-198 14-16 8-16
  player 30-83 73-114 16 9-16
  truck at r40++ r56+++16 16x16 grid 4x1 0 0 if r36++=0-7
  player at r40++ r56+++16 16x16 grid 4x1 0 0 if r36++=16
  flag at r40++ r56+++15 7x16 grid 4x1 0 0 if r36++=8-15
venture: 012345 8 0 5
  player 49-83 125-203 1-2 1-3
  hallmonsters 0-157 22-177 3-7 5-11
video_pinball: 012345 8 4 -
  drop_target 35-123 2-176 1-10 7-19
  bumper 28-128 26-134 2-22 5-44 color=118
  spinner 18-138 68-114 3-9 6-14
  flipper 52-100 157-206 8 7-11
  ball 8-163 3-201 2 4
yars_revenge: 012345 8 4 -
  barrier 40-64 0-35 18-38 118-260
  shield_block 116-140 52-108 2-6 10-22
  enemy 148-152 55-121 5-11 10-25
  player 0-73 0-199 5-11 10-22 color=124
  enemy_missile 74-154 66-162 2-6 1-5
  swirl 4-146 56-103 5-11 10-22 color=52
  shield_block at 128 r26+121 4x8 grid 8x16 4 -8 bits 1 0 1 if r53=160-255
  player_bullet at r38-1 r37+4 1x2 if r53=160-255
"""
